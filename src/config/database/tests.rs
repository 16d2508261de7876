use super::*;

fn read(variables: &[(&str, &str)]) -> Result<DatabaseConfig, ConfigError> {
    DatabaseConfig::read(&variables.iter().copied().collect())
}

#[test]
fn a_percent_encoded_password_is_decoded_and_tls_parameters_are_taken_out() {
    let config = read(&[(
        "DATABASE_URL",
        "postgres://worker:p%40s%23s@db.example.com:6432/jobs?sslmode=verify-full&connect_timeout=2&sslrootcert=%2Fcerts%2Fca.pem",
    )])
    .unwrap();
    assert_eq!(config.connection.get_password(), Some(b"p@s#s".as_slice()));
    assert_eq!(config.tls.mode, SslMode::VerifyFull);
    assert_eq!(
        config.tls.root_cert,
        SslRootCert::File("/certs/ca.pem".into())
    );
    assert_eq!(
        config.connection.get_connect_timeout(),
        Some(&std::time::Duration::from_secs(2))
    );
}

#[test]
fn the_environment_fills_what_the_url_leaves_open() {
    let config = read(&[
        ("DATABASE_URL", "postgres://worker@db/jobs?sslmode=require"),
        ("PGSSLMODE", "disable"),
        ("PGSSLROOTCERT", "/certs/ca.pem"),
    ])
    .unwrap();
    assert_eq!(config.tls.mode, SslMode::VerifyCa);
    assert_eq!(
        config.tls.root_cert,
        SslRootCert::File("/certs/ca.pem".into())
    );
    let config = read(&[("DATABASE_URL", "postgres://worker@db/jobs")]).unwrap();
    assert_eq!(config.tls.mode, SslMode::Prefer);
}

#[test]
fn require_with_a_root_certificate_verifies_it() {
    let config = read(&[(
        "DATABASE_URL",
        "postgres://worker@db/jobs?sslmode=require&sslrootcert=ca.pem",
    )])
    .unwrap();
    assert_eq!(config.tls.mode, SslMode::VerifyCa);
}

#[test]
fn the_system_roots_are_checked_in_full_or_not_at_all() {
    let url = "postgres://worker@db/jobs?sslrootcert=system";
    let config = read(&[("DATABASE_URL", url)]).unwrap();
    assert_eq!(config.tls.mode, SslMode::VerifyFull);
    assert_eq!(config.tls.root_cert, SslRootCert::System);
    for weaker in ["disable", "prefer", "require", "verify-ca"] {
        let url = format!("{url}&sslmode={weaker}");
        assert!(read(&[("DATABASE_URL", &url)]).is_err(), "{weaker}");
    }
}

#[test]
fn an_error_names_the_variable_and_shows_no_secret() {
    for url in [
        "mysql://worker:hunter2@db/jobs",
        "postgres://worker:hunter2@x@db/jobs",
        "postgres://worker:hunter2#@db/jobs",
        "postgres://worker:hunter2@db/jobs?sslmode=maybe",
        "postgres://worker:hunter2@db:port/jobs",
        "postgres://",
    ] {
        let message = read(&[("DATABASE_URL", url)]).unwrap_err().to_string();
        assert!(message.starts_with("DATABASE_URL "), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
    let message = read(&[]).unwrap_err().to_string();
    assert_eq!(
        message,
        format!("DATABASE_URL is not set, and DATABASE_SECRET_ARN neither: expected {URL}")
    );
}

const SECRET_ARN: (&str, &str) = (
    "DATABASE_SECRET_ARN",
    "arn:aws:secretsmanager:eu-west-1:123456789012:secret:rds!db-1f2e-AbCdEf",
);

#[test]
fn with_a_secret_the_url_may_say_as_little_as_it_likes() {
    let config = read(&[SECRET_ARN]).unwrap();
    assert!(matches!(config.login, Login::Secret(_)));
    for url in [
        "postgres://db.example.com/jobs",
        "postgres:///jobs?sslmode=verify-full",
        "postgres://worker:old@db.example.com:6432/jobs",
    ] {
        let config = read(&[SECRET_ARN, ("DATABASE_URL", url)]).unwrap();
        assert!(matches!(config.login, Login::Secret(_)), "{url}");
    }
}

#[test]
fn a_secret_is_named_by_its_arn() {
    for value in [
        "db-password",
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:",
        "arn:aws:ssm:eu-west-1:123456789012:parameter/db",
        "{\"username\": \"worker\", \"password\": \"hunter2\"}",
    ] {
        let message = read(&[("DATABASE_SECRET_ARN", value)])
            .unwrap_err()
            .to_string();
        assert!(message.starts_with("DATABASE_SECRET_ARN "), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}

#[test]
fn a_token_is_made_for_the_urls_decoded_user_its_host_and_port() {
    let config = read(&[
        ("DATABASE_IAM_AUTH", "true"),
        (
            "DATABASE_URL",
            "postgres://job%40board@db.example.com/jobs?sslmode=verify-full",
        ),
    ])
    .unwrap();
    let Login::IamToken(token) = config.login else {
        panic!("{:?}", config.login);
    };
    assert_eq!(token.user, "job@board");
    assert_eq!(token.host, "db.example.com");
    assert_eq!(token.port, 5432);
}

#[test]
fn a_token_needs_tls_and_one_host_and_a_user() {
    for (url, named) in [
        ("postgres://worker@db/jobs", "sslmode"),
        ("postgres://worker@db/jobs?sslmode=prefer", "sslmode"),
        ("postgres://worker@db/jobs?sslmode=disable", "sslmode"),
        ("postgres://worker@db,db2/jobs?sslmode=require", "one host"),
        (
            "postgres://worker@%2Frun%2Fpg/jobs?sslmode=require",
            "a socket",
        ),
        ("postgres://db/jobs?sslmode=require", "names no user"),
        ("postgres:///jobs?sslmode=require", "names no host"),
    ] {
        let message = read(&[("DATABASE_IAM_AUTH", "true"), ("DATABASE_URL", url)])
            .unwrap_err()
            .to_string();
        assert!(message.contains(named), "{url}: {message}");
    }
    for weak in ["disable", "prefer"] {
        let url = ("DATABASE_URL", "postgres://worker@db/jobs");
        let message = read(&[("DATABASE_IAM_AUTH", "true"), url, ("PGSSLMODE", weak)])
            .unwrap_err()
            .to_string();
        assert!(message.starts_with("DATABASE_IAM_AUTH "), "{message}");
    }
}

#[test]
fn one_password_at_most_is_asked_for() {
    let url = (
        "DATABASE_URL",
        "postgres://worker@db/jobs?sslmode=verify-full",
    );
    let message = read(&[SECRET_ARN, url, ("DATABASE_IAM_AUTH", "true")])
        .unwrap_err()
        .to_string();
    assert!(message.starts_with("DATABASE_IAM_AUTH "), "{message}");
    let message = read(&[url, ("DATABASE_IAM_AUTH", "yes")])
        .unwrap_err()
        .to_string();
    assert_eq!(
        message,
        "DATABASE_IAM_AUTH is malformed: expected true or false"
    );
    let config = read(&[SECRET_ARN, url, ("DATABASE_IAM_AUTH", "false")]).unwrap();
    assert!(matches!(config.login, Login::Secret(_)));
}

#[test]
fn amazons_own_roots_are_asked_for_by_a_word_of_ours() {
    let config = read(&[(
        "DATABASE_URL",
        "postgres://worker@db/jobs?sslmode=require&sslrootcert=rds",
    )])
    .unwrap();
    assert_eq!(config.tls.root_cert, SslRootCert::Rds);
    assert_eq!(config.tls.mode, SslMode::VerifyCa);
}

#[test]
fn a_parameter_that_is_not_known_is_said_to_be_the_problem_and_not_quoted() {
    for query in ["gssencmode=prefer", "connect_timeout=soon", "hunter2"] {
        let url = format!("postgres://worker@db/jobs?sslmode=require&{query}");
        let error = read(&[("DATABASE_URL", &url)]).unwrap_err().to_string();
        assert!(error.contains("DATABASE_URL has a parameter"), "{error}");
        for part in query.split('=') {
            let expected = error.split("expected").next().unwrap_or_default();
            assert!(!expected.contains(part), "{error}");
        }
    }
}
