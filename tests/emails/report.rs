//! How a test says what is wrong: all of it at once, and not in the words of Rust.

use onemail::emails::FolderError;

use crate::source::Source;

#[track_caller]
pub fn assert_none(source: &Source, problems: &[FolderError]) {
    if problems.is_empty() {
        return;
    }
    let mut lines: Vec<_> = problems
        .iter()
        .map(|problem| source.explain(problem))
        .collect();
    // Samples often show the same thing.
    lines.dedup();
    panic!("\n\n{}\n", lines.join("\n"));
}
