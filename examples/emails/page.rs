//! The page that shows all previews.

use anyhow::Context as _;
use minijinja::Environment;
use minijinja::value::Serde;
use serde::Serialize;
use serde_json::json;

/// A sample, and the email that it becomes.
#[derive(Serialize)]
pub struct Preview {
    pub event_type: String,
    pub name: String,
    pub key: String,
    pub event: String,
    pub row: String,
    pub from: String,
    pub reply_to: Option<String>,
    pub to: String,
    pub headers: Vec<(String, String)>,
    pub subject: String,
    pub html: String,
    pub text: String,
}

pub fn index(previews: &[Preview]) -> anyhow::Result<String> {
    let mut environment = Environment::new();
    // Its name has what is printed escaped.
    environment.add_template("index.html", include_str!("index.html"))?;
    let page = environment.get_template("index.html")?;
    page.render(Serde(&json!({ "previews": previews })))
        .context("Failed to render the page")
}
