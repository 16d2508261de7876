//! What an error of Secrets Manager means: it passes, or it is our setup.

use crate::support::by_hand;
use crate::support::secrets_manager::Mood;

use super::secret::Stage;

struct Row {
    mood: Mood,
    code: &'static str,
    /// With the SDK's own retries.
    requests: usize,
}

const fn refusing(status: u16, code: &'static str, requests: usize) -> Row {
    Row {
        mood: Mood::Refusing(status, code),
        code,
        requests,
    }
}

async fn assert_row(row: Row, reason: &str, level: &str) {
    let stage = Stage::start().await;
    stage.secrets.turn(row.mood);

    let line = stage.release_one("shut-out").await;

    assert_eq!(line.field("reason"), reason, "{}", line.text);
    assert_eq!(line.field("code"), row.code, "{}", line.text);
    assert_eq!(line.level(), level, "{}", row.code);
    assert!(line.text.contains("DATABASE_SECRET_ARN"), "{}", line.text);
    assert_eq!(stage.secrets.requests(), row.requests, "{}", row.code);
    stage.ses.assert_requests(0);
    // Nothing of it is kept.
    stage.secrets.turn(Mood::Obliging);
    stage.send_one("let-in").await;
}

#[tokio::test]
async fn what_secrets_manager_will_go_on_to_refuse_is_ours_to_fix() {
    for row in [
        refusing(400, "AccessDeniedException", 1),
        refusing(400, "ResourceNotFoundException", 1),
        refusing(400, "InvalidRequestException", 1),
        refusing(400, "InvalidParameterException", 1),
        refusing(400, "DecryptionFailure", 1),
        refusing(403, "UnrecognizedClientException", 1),
    ] {
        assert_row(row, "database_setup", "ERROR").await;
    }
}

#[tokio::test]
async fn what_passes_at_secrets_manager_comes_back() {
    for row in [
        refusing(400, "ThrottlingException", 3),
        refusing(500, "InternalServiceError", 3),
        refusing(503, "ServiceUnavailable", 3),
    ] {
        assert_row(row, "database", "WARN").await;
    }
    let broken = Row {
        mood: Mood::Closing,
        code: "ConnectionFailed",
        requests: 3,
    };
    assert_row(broken, "database", "WARN").await;
}

#[tokio::test]
async fn a_secrets_manager_that_says_nothing_comes_back() {
    let silent = Row {
        mood: Mood::Silent,
        code: "Timeout",
        requests: 2,
    };
    assert_row(silent, "database", "WARN").await;
}

#[tokio::test]
async fn a_process_without_credentials_says_so() {
    let stage = Stage::start_with(
        |secret| secret,
        |environment, _| {
            environment
                .without("AWS_ACCESS_KEY_ID")
                .without("AWS_SECRET_ACCESS_KEY")
                .without("AWS_SESSION_TOKEN")
                .with("AWS_EC2_METADATA_DISABLED", "true")
        },
    )
    .await;

    let line = stage.release_one("nobody").await;

    assert_eq!(line.field("reason"), "database_setup", "{}", line.text);
    assert_eq!(line.field("code"), "CredentialsNotLoaded", "{}", line.text);
    let run = by_hand::run(&stage.environment, &["migrate", "-"], "{}").await;
    let said = run.stderr.matches("CredentialsNotLoaded").count();
    assert_eq!(said, 1, "{}", run.stderr);
    assert_eq!(stage.secrets.requests(), 0);
}
