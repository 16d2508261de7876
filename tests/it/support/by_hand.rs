//! The binary run by hand, outside Lambda.

use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::environment::Environment;
use super::patience::within_reason;

#[derive(Clone, Debug)]
pub struct Run {
    pub success: bool,
    pub stdout: String,
    pub stderr: String,
}

/// Runs it to its end with these arguments and this standard input.
pub async fn run(environment: &Environment, arguments: &[&str], input: &str) -> Run {
    let mut command = environment.command();
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = Command::from(command)
        .kill_on_drop(true)
        .spawn()
        .expect("the binary under test starts");
    let mut stdin = process.stdin.take().expect("it is piped");
    // It may have ended without reading.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    let output = within_reason("the end of the run", process.wait_with_output())
        .await
        .expect("its output is piped");
    Run {
        success: output.status.success(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8 on standard output"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8 on standard error"),
    }
}
