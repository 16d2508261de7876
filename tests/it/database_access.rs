//! The ways into the database, and TLS on them: `docs/database/ways-in.md`.

mod password;
mod secret;
mod secret_errors;
mod secret_form;
mod tls;
mod token;
