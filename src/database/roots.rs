//! The roots that a server's certificate may come from.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{CertificateError, Error};
use x509_cert::der::Decode as _;

use crate::config::SslRootCert;

/// Amazon RDS's own; the file says whence they are.
const RDS: &[u8] = include_bytes!("rds_roots.pem");

#[derive(Debug)]
pub(super) struct Roots {
    pub web_pki: Arc<WebPkiServerVerifier>,
    /// Those of a file, as they stand in it.
    listed: Vec<CertificateDer<'static>>,
}

impl Roots {
    pub fn read(roots: &SslRootCert, provider: &Arc<CryptoProvider>) -> anyhow::Result<Self> {
        let listed = match roots {
            SslRootCert::File(path) => of_file(path)?,
            SslRootCert::Unset | SslRootCert::System | SslRootCert::Rds => Vec::new(),
        };
        let mut store = compiled_in(roots)?;
        for certificate in &listed {
            store
                .add(certificate.clone())
                .context("A root certificate of PGSSLROOTCERT, or of sslrootcert, is malformed")?;
        }
        let web_pki =
            WebPkiServerVerifier::builder_with_provider(store.into(), Arc::clone(provider))
                .build()
                .context("Failed to set up the verification of certificates")?;
        Ok(Self { web_pki, listed })
    }

    /// Whether a server's certificate is itself a root of the file. libpq takes such a one, self-signed as a rule;
    /// webpki doesn't.
    pub fn lists(&self, certificate: &CertificateDer<'_>) -> bool {
        self.listed.iter().any(|root| root == certificate)
    }
}

/// Whether the certificate is valid at this time, as far as its own dates go.
pub(super) fn check_dates(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let certificate = x509_cert::Certificate::from_der(certificate)
        .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
    let validity = certificate.tbs_certificate.validity;
    let begins = UnixTime::since_unix_epoch(validity.not_before.to_unix_duration());
    let ends = UnixTime::since_unix_epoch(validity.not_after.to_unix_duration());
    let problem = if now < begins {
        CertificateError::NotValidYetContext {
            time: now,
            not_before: begins,
        }
    } else if now > ends {
        CertificateError::ExpiredContext {
            time: now,
            not_after: ends,
        }
    } else {
        return Ok(());
    };
    Err(Error::InvalidCertificate(problem))
}

fn compiled_in(roots: &SslRootCert) -> anyhow::Result<RootCertStore> {
    const UNREADABLE: &str = "Failed to read Amazon RDS's root certificates";
    let mut store = RootCertStore::empty();
    if let SslRootCert::Unset | SslRootCert::System = roots {
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    if let SslRootCert::Unset | SslRootCert::Rds = roots {
        for certificate in CertificateDer::pem_slice_iter(RDS) {
            let added = store.add(certificate.context(UNREADABLE)?);
            added.context(UNREADABLE)?;
        }
    }
    Ok(store)
}

fn of_file(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| unreadable(path))?;
    anyhow::ensure!(!certificates.is_empty(), unreadable(path));
    Ok(certificates)
}

fn unreadable(path: &Path) -> String {
    format!(
        "PGSSLROOTCERT, or sslrootcert of DATABASE_URL, must be `rds`, `system` or the name of a PEM file with root \
         certificates; {} is none",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// 2060: RDS's certificates are renewed without us, under roots that outlive this code.
    const LATE: u64 = 2_840_140_800;

    #[test]
    fn each_region_has_amazons_three_roots_of_the_present_generation() {
        let mut kinds_by_region = BTreeMap::<String, Vec<String>>::new();
        for certificate in CertificateDer::pem_slice_iter(RDS) {
            let certificate = certificate.expect("the file is PEM");
            check_dates(
                &certificate,
                UnixTime::since_unix_epoch(std::time::Duration::from_secs(LATE)),
            )
            .expect("it holds for decades");
            let certificate = x509_cert::Certificate::from_der(&certificate).expect("X.509");
            let subject = certificate.tbs_certificate.subject.to_string();
            assert_eq!(subject, certificate.tbs_certificate.issuer.to_string());
            let (_, name) = subject.split_once("CN=Amazon RDS ").expect("Amazon RDS's");
            let (region, kind) = name.split_once(" Root CA ").expect("a root");
            let kind = kind.split(',').next().unwrap_or_default();
            kinds_by_region
                .entry(region.to_owned())
                .or_default()
                .push(kind.to_owned());
        }
        assert_eq!(kinds_by_region.len(), 27);
        for (region, kinds) in kinds_by_region {
            assert_eq!(kinds, ["ECC384 G1", "RSA2048 G1", "RSA4096 G1"], "{region}");
        }
    }

    #[test]
    fn unset_trusts_public_roots_and_amazons_and_each_word_one_of_the_two() {
        const AMAZONS: usize = 81;
        let public = webpki_roots::TLS_SERVER_ROOTS.len();
        for (roots, count) in [
            (SslRootCert::Unset, public + AMAZONS),
            (SslRootCert::System, public),
            (SslRootCert::Rds, AMAZONS),
            (SslRootCert::File("ca.pem".into()), 0),
        ] {
            let store = compiled_in(&roots).expect("they are compiled in");
            assert_eq!(store.len(), count, "{roots:?}");
        }
    }
}
