//! `recipient.sql` as the function sends it, and where in the file Postgres finds it wrong.

use std::collections::BTreeSet;

use onemail::emails::{Folder, FolderError};
use tokio_postgres::error::ErrorPosition;
use tokio_postgres::{Column, Error, Statement};

pub struct Query<'a> {
    file: String,
    /// What the function sends: the file, between a first and a last line of the function's own.
    pub wrapped: &'a str,
    /// The file by itself.
    pub alone: &'a str,
}

impl<'a> Query<'a> {
    pub fn of(folder: &'a Folder) -> Self {
        let wrapped = folder.recipient_query();
        let start = wrapped.find('\n').map_or(0, |end| end + 1);
        let end = wrapped.rfind('\n').unwrap_or(wrapped.len());
        Self {
            file: format!("{}/recipient.sql", folder.event_type()),
            wrapped,
            alone: &wrapped[start..end],
        }
    }

    /// By itself the query shows what can't be seen of it as a part of another: where a parenthesis is missing, and
    /// that two columns have one name.
    pub fn check_alone(&self, prepared: Result<Statement, Error>) -> Result<(), FolderError> {
        let statement = match prepared {
            Ok(statement) => statement,
            Err(error) => {
                let problem = self.problem(&error, 0);
                // Without a line, what the function sends may have more to say.
                return problem.line.map_or(Ok(()), |_| Err(problem));
            }
        };
        let mut names = BTreeSet::new();
        let mut columns = statement.columns().iter().map(Column::name);
        match columns.find(|name| !names.insert(*name)) {
            Some(name) => {
                let problem =
                    format!("two columns are called `{name}`: name one otherwise, with AS");
                Err(FolderError::new(self.file.as_str(), None, problem))
            }
            None => Ok(()),
        }
    }

    pub fn wrapped_problem(&self, error: &Error) -> FolderError {
        let first_line = self.wrapped.lines().next().unwrap_or_default();
        self.problem(error, first_line.chars().count() + 1)
    }

    /// `before`: the characters that were sent before those of the file.
    fn problem(&self, error: &Error, before: usize) -> FolderError {
        let Some(error) = error.as_db_error() else {
            return FolderError::new(self.file.as_str(), None, error);
        };
        let line = match error.position() {
            Some(ErrorPosition::Original(position)) => Some(self.line(*position as usize, before)),
            _ => None,
        };
        let advice = [error.detail(), error.hint()].into_iter().flatten();
        let advice: String = advice.map(|text| format!(" ({text})")).collect();
        let problem = format!("{}{advice}", error.message());
        FolderError::new(self.file.as_str(), line, problem)
    }

    /// Postgres counts characters, from 1. Beyond the file it is the last line that Postgres can't go on from.
    fn line(&self, position: usize, before: usize) -> usize {
        let until = self
            .alone
            .chars()
            .take((position - 1).saturating_sub(before));
        until.filter(|&character| character == '\n').count() + 1
    }
}
