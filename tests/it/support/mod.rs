//! What stands around the function in production, as far as the function can tell: Lambda, SES, Postgres and the
//! network before it. The binary under test is the real one, in a process of its own.

pub mod by_hand;
pub mod certificate;
pub mod database;
pub mod door;
pub mod environment;
pub mod event;
pub mod gate;
pub mod gatekeeper;
pub mod http;
pub mod lambda;
pub mod logs;
pub mod mail;
pub mod mode;
pub mod notification;
pub mod patience;
pub mod proxy;
pub mod runtime_api;
pub mod secrets_manager;
pub mod ses;
pub mod sqs;
pub mod tls_server;
pub mod world;
