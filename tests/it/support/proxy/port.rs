//! A port that stays this process's own while nobody listens on it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

/// The kernel gives a port to somebody else, be it as the near end of a connection, as soon as no socket is bound to
/// it. So one socket is bound for as long as the port is wanted, and never listens; those that do share the port.
pub struct Port {
    number: u16,
    _bound: TcpSocket,
}

impl Port {
    pub fn free() -> io::Result<Self> {
        let bound = bind(0)?;
        let number = bound.local_addr()?.port();
        Ok(Self {
            number,
            _bound: bound,
        })
    }

    pub fn number(&self) -> u16 {
        self.number
    }

    /// Connections are taken until the listener is dropped, and refused from then on.
    pub fn listen(&self) -> io::Result<TcpListener> {
        const BACKLOG: u32 = 1024;
        bind(self.number)?.listen(BACKLOG)
    }
}

fn bind(port: u16) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseport(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    Ok(socket)
}

#[tokio::test]
async fn a_port_stays_its_own_while_nobody_listens_on_it() {
    let port = Port::free().expect("a free port");
    let address = (Ipv4Addr::LOCALHOST, port.number());
    drop(port.listen().expect("the port is ours"));

    let refused = tokio::net::TcpStream::connect(address).await;
    let taken = TcpListener::bind(address).await;

    assert_eq!(
        refused.map_err(|error| error.kind()).err(),
        Some(io::ErrorKind::ConnectionRefused)
    );
    assert_eq!(
        taken.map_err(|error| error.kind()).err(),
        Some(io::ErrorKind::AddrInUse)
    );
    port.listen().expect("the port is ours");
}
