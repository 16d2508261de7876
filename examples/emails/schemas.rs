//! `event.schema.json` of each folder.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use onemail::emails::{Catalogue, event_schema};

use crate::source::Source;

pub fn write(source: &Source, catalogue: &Catalogue) -> anyhow::Result<()> {
    for folder in catalogue.folders() {
        let file = format!("{}/event.schema.json", folder.event_type());
        let schema = format!("{:#}\n", event_schema(folder));
        let state = match source.0.get(&file) {
            Some(text) if *text == schema => "is up to date",
            _ => {
                let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                    .join("emails")
                    .join(&file);
                fs::write(&path, schema)
                    .with_context(|| format!("Failed to write {}", path.display()))?;
                "written"
            }
        };
        println!("emails/{file} {state}");
    }
    Ok(())
}
