//! Certificates for servers, and the authorities that sign them, made anew for each test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

/// A certificate and its key, both PEM.
#[derive(Clone, Debug)]
pub struct Certificate {
    pub pem: String,
    pub key_pem: String,
}

/// When a certificate holds.
#[derive(Clone, Copy, Debug)]
pub enum Dates {
    Now,
    /// It ended in 2020.
    Past,
    /// It begins in 2090.
    Future,
}

pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut parameters = parameters(&[], Dates::Now);
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = key();
        let pem = parameters
            .self_signed(&key)
            .expect("it can be signed")
            .pem();
        Self {
            issuer: Issuer::new(parameters, key),
            pem,
        }
    }

    pub fn certify(&self, host: &str, dates: Dates) -> Certificate {
        let key = key();
        let signed = parameters(&[host], dates).signed_by(&key, &self.issuer);
        Certificate {
            pem: signed.expect("it can be signed").pem(),
            key_pem: key.serialize_pem(),
        }
    }
}

/// As `openssl req -x509` makes it: an authority for itself.
pub fn self_signed(host: &str, dates: Dates) -> Certificate {
    let mut parameters = parameters(&[host], dates);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = key();
    Certificate {
        pem: parameters
            .self_signed(&key)
            .expect("it can be signed")
            .pem(),
        key_pem: key.serialize_pem(),
    }
}

fn key() -> KeyPair {
    KeyPair::generate().expect("there is randomness")
}

fn parameters(hosts: &[&str], dates: Dates) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().copied().map(str::to_owned).collect();
    let mut parameters = CertificateParams::new(hosts).expect("names of hosts");
    (parameters.not_before, parameters.not_after) = match dates {
        Dates::Now => (date_time_ymd(2020, 1, 1), date_time_ymd(2099, 1, 1)),
        Dates::Past => (date_time_ymd(2019, 1, 1), date_time_ymd(2020, 1, 1)),
        Dates::Future => (date_time_ymd(2090, 1, 1), date_time_ymd(2099, 1, 1)),
    };
    parameters
}

/// A directory that goes away with this.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("onemail-tls-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("it is ours alone");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, and gives its whole name.
    pub fn write(&self, name: &str, content: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content).expect("it can be written");
        path.to_str().expect("UTF-8").to_owned()
    }

    pub fn remove(&self, name: &str) {
        // It may not be there.
        let _ = std::fs::remove_file(self.0.join(name));
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
