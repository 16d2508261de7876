use std::process::ExitCode;

fn main() -> ExitCode {
    onemail::run::run()
}
