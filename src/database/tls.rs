//! TLS to Postgres as libpq's `sslmode` means it:
//! <https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-SSLMODE-STATEMENTS>.

use std::sync::Arc;

use anyhow::Context as _;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::config::{SslMode, TlsConfig};

use super::roots::{Roots, check_dates};

/// The connector for a mode, and tokio-postgres's own word for when to use it.
pub(super) fn connector(
    tls: &TlsConfig,
) -> anyhow::Result<(MakeRustlsConnect, tokio_postgres::config::SslMode)> {
    use tokio_postgres::config::SslMode as Use;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let (check, usage) = match tls.mode {
        SslMode::Disable => (Check::Nothing, Use::Disable),
        SslMode::Prefer => (Check::Nothing, Use::Prefer),
        SslMode::Require => (Check::Nothing, Use::Require),
        SslMode::VerifyCa => (
            Check::Chain(Roots::read(&tls.root_cert, &provider)?),
            Use::Require,
        ),
        SslMode::VerifyFull => (
            Check::ChainAndName(Roots::read(&tls.root_cert, &provider)?),
            Use::Require,
        ),
    };
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .context("Failed to set up TLS")?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { provider, check }))
        .with_no_client_auth();
    Ok((MakeRustlsConnect::new(config), usage))
}

/// What of the server's certificate is checked. Signatures are always verified: the server holds the key of the
/// certificate that it shows.
#[derive(Debug)]
enum Check {
    Nothing,
    Chain(Roots),
    ChainAndName(Roots),
}

#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    check: Check,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let (roots, with_name) = match &self.check {
            Check::Nothing => return Ok(ServerCertVerified::assertion()),
            Check::Chain(roots) => (roots, false),
            Check::ChainAndName(roots) => (roots, true),
        };
        if roots.lists(end_entity) {
            check_dates(end_entity, now)?;
            if with_name {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        let verified = roots.web_pki.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // The name is checked last, so this error says that all the rest holds.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !with_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
