//! TLS to Postgres as libpq's `sslmode` means it:
//! <https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-SSLMODE-STATEMENTS>.

use std::sync::Arc;

use anyhow::Context as _;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::config::{SslMode, SslRootCert};

/// The connector for a mode, and tokio-postgres's own word for when to use it.
pub(super) fn connector(
    mode: SslMode,
    roots: &SslRootCert,
) -> anyhow::Result<(MakeRustlsConnect, tokio_postgres::config::SslMode)> {
    use tokio_postgres::config::SslMode as Use;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let (verifier, usage): (Arc<dyn ServerCertVerifier>, _) = match mode {
        SslMode::Disable => (Unverified::with(&provider, None), Use::Disable),
        SslMode::Prefer => (Unverified::with(&provider, None), Use::Prefer),
        SslMode::Require => (Unverified::with(&provider, None), Use::Require),
        SslMode::VerifyCa => {
            let chain = web_pki(&provider, roots)?;
            (Unverified::with(&provider, Some(chain)), Use::Require)
        }
        SslMode::VerifyFull => (web_pki(&provider, roots)?, Use::Require),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("Failed to set up TLS")?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok((MakeRustlsConnect::new(config), usage))
}

fn web_pki(
    provider: &Arc<CryptoProvider>,
    roots: &SslRootCert,
) -> anyhow::Result<Arc<WebPkiServerVerifier>> {
    let mut store = RootCertStore::empty();
    match roots {
        SslRootCert::Public => store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        SslRootCert::File(path) => {
            let unreadable =
                || format!("Failed to read the root certificates in {}", path.display());
            for certificate in CertificateDer::pem_file_iter(path).with_context(unreadable)? {
                store
                    .add(certificate.with_context(unreadable)?)
                    .with_context(unreadable)?;
            }
            anyhow::ensure!(!store.is_empty(), "No certificate in {}", path.display());
        }
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
        .build()
        .context("Failed to set up the verification of certificates")
}

/// Leaves out the host name, and the chain too where there is nothing to check it with. Signatures are
/// always verified: the server holds the key of the certificate that it shows.
#[derive(Debug)]
struct Unverified {
    provider: Arc<CryptoProvider>,
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl Unverified {
    fn with(provider: &Arc<CryptoProvider>, chain: Option<Arc<WebPkiServerVerifier>>) -> Arc<Self> {
        Arc::new(Self {
            provider: Arc::clone(provider),
            chain,
        })
    }
}

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        // The name is checked last, so this error says that all the rest holds.
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
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
