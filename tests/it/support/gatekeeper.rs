//! A gatekeeper before Postgres, as RDS is one for IAM: it speaks TLS, asks for the password in clear text, remembers
//! it, and lets in whom the server behind it trusts.

use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::certificate::Certificate;
use super::door::error;

pub struct Gatekeeper {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    upstream_port: u16,
    tls: TlsAcceptor,
    passwords: Mutex<Vec<String>>,
    /// How many more are refused.
    refusals: Mutex<usize>,
}

impl Gatekeeper {
    pub async fn start(upstream_port: u16, certificate: &Certificate) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr();
        let port = address.expect("a bound socket has an address").port();
        let shared = Arc::new(Shared {
            upstream_port,
            tls: acceptor(certificate),
            passwords: Mutex::default(),
            refusals: Mutex::default(),
        });
        let accepting = shared.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(receive(client, accepting.clone()));
            }
        });
        Self { port, shared }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Refuses the next `count` passwords.
    pub fn refuse(&self, count: usize) {
        *self.shared.refusals.lock().expect("no test panics here") = count;
    }

    /// The passwords that came, in their order, also those that were refused.
    pub fn passwords(&self) -> Vec<String> {
        let passwords = self.shared.passwords.lock();
        passwords.expect("no test panics here").clone()
    }
}

fn acceptor(certificate: &Certificate) -> TlsAcceptor {
    let chain = CertificateDer::from_pem_slice(certificate.pem.as_bytes()).expect("PEM");
    let key = PrivateKeyDer::from_pem_slice(certificate.key_pem.as_bytes()).expect("PEM");
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_no_client_auth()
        .with_single_cert(vec![chain], key);
    TlsAcceptor::from(Arc::new(config.expect("the key is the certificate's")))
}

/// <https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-START-UP>
async fn receive(mut client: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    const REQUEST_FOR_TLS: u32 = 80_877_103;
    let request = message(&mut client).await?;
    if request.get(4..) != Some(&REQUEST_FOR_TLS.to_be_bytes()) {
        // Without TLS nobody is asked for a password.
        return client.write_all(&error("28000")).await;
    }
    client.write_all(b"S").await?;
    let mut client = shared.tls.accept(client).await?;
    let startup = message(&mut client).await?;

    let cleartext_password = [b'R', 0, 0, 0, 8, 0, 0, 0, 3];
    client.write_all(&cleartext_password).await?;
    client.flush().await?;
    assert_eq!(client.read_u8().await?, b'p');
    let password = message(&mut client).await?;
    let password = String::from_utf8_lossy(&password[4..]);
    let password = password.trim_end_matches('\0').to_owned();
    let passwords = shared.passwords.lock();
    passwords.expect("no test panics here").push(password);
    if is_refused(&shared) {
        client.write_all(&error("28P01")).await?;
        return client.shutdown().await;
    }

    let mut server = TcpStream::connect(("127.0.0.1", shared.upstream_port)).await?;
    server.write_all(&startup).await?;
    pass(&mut client, &mut server).await
}

async fn pass(
    client: &mut (impl AsyncRead + AsyncWrite + Unpin),
    server: &mut TcpStream,
) -> io::Result<()> {
    copy_bidirectional(client, server).await.map(|_| ())
}

fn is_refused(shared: &Shared) -> bool {
    let mut refusals = shared.refusals.lock().expect("no test panics here");
    let refused = *refusals > 0;
    *refusals = refusals.saturating_sub(1);
    refused
}

/// A message with its length before it.
async fn message(client: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = client.read_u32().await?;
    let mut message = length.to_be_bytes().to_vec();
    message.resize(length as usize, 0);
    client.read_exact(&mut message[4..]).await?;
    Ok(message)
}
