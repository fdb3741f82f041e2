//! A TCP proxy that can be made to fail.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::Context as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::Failure;

/// Forwards connections from a free port of the loopback interface. It ends with this.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: watch::Sender<State>,
    accepting: JoinHandle<()>,
    accepted: Arc<AtomicU64>,
}

/// What is to be done. The numbers count how often it was said, so that a connection knows what was said after it was made.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    closed: bool,
    frozen: bool,
    cuts: u64,
    resets: u64,
    half_opens: u64,
}

impl Proxy {
    /// A proxy for a port of this machine.
    pub async fn start(target: u16) -> Result<Self, Failure> {
        let listener = listen(0).context("a proxy has no port")?;
        let port = listener.local_addr()?.port();
        let state = watch::Sender::new(State::default());
        let accepted = Arc::new(AtomicU64::new(0));
        let accepting = tokio::spawn(accept(listener, port, target, state.subscribe(), accepted.clone()));
        Ok(Self { port, state, accepting, accepted })
    }

    /// How many connections there have been so far.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Closes all connections in good order (FIN).
    pub fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }

    /// Closes all connections with RST.
    pub fn reset(&self) {
        self.state.send_modify(|state| state.resets += 1);
    }

    /// Whether bytes stop to flow. Nothing is closed: what was sent meanwhile flows later. New connections are accepted, and
    /// hang likewise.
    pub fn freeze(&self, frozen: bool) {
        self.state.send_modify(|state| state.frozen = frozen);
    }

    /// Lets the connections that there are hang for ever, and new ones flow: what a lost entry in a firewall does.
    pub fn half_open(&self) {
        self.state.send_modify(|state| state.half_opens += 1);
    }

    /// Closes all connections and the port: who connects is refused. Or opens the port again.
    pub fn close(&self, closed: bool) {
        self.state.send_modify(|state| {
            state.closed = closed;
            state.resets += u64::from(closed);
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

fn listen(port: u16) -> Result<TcpListener, Failure> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    Ok(socket.listen(1024)?)
}

async fn accept(
    listener: TcpListener,
    port: u16,
    target: u16,
    mut state: watch::Receiver<State>,
    accepted: Arc<AtomicU64>,
) {
    let mut listener = Some(listener);
    loop {
        let closed = state.borrow_and_update().closed;
        match &listener {
            Some(_) if closed => listener = None,
            None if !closed => match listen(port) {
                Ok(again) => listener = Some(again),
                Err(error) => return eprintln!("the proxy cannot open its port again: {error}"),
            },
            Some(listener) => tokio::select! {
                connection = listener.accept() => match connection {
                    Ok((client, _)) => {
                        accepted.fetch_add(1, Relaxed);
                        tokio::spawn(serve(client, target, state.clone()));
                    }
                    Err(error) => return eprintln!("the proxy cannot accept: {error}"),
                },
                changed = state.changed() => if changed.is_err() { return },
            },
            None => {
                if state.changed().await.is_err() {
                    return;
                }
            }
        }
    }
}

/// One connection, until one side ends it or somebody here does.
async fn serve(mut client: TcpStream, target: u16, mut state: watch::Receiver<State>) {
    let born = *state.borrow();
    // It had come before the port was closed, and was accepted afterwards.
    if born.closed {
        return drop(client.set_zero_linger());
    }
    let mut until_told = state.clone();
    let server = tokio::select! {
        server = async {
            state.wait_for(|state| !state.frozen).await.ok()?;
            TcpStream::connect((Ipv4Addr::LOCALHOST, target)).await.ok()
        } => server,
        _ = until_told.wait_for(|state| state.cuts > born.cuts || state.resets > born.resets) => None,
    };
    // To a server that is not there, nobody can be connected.
    let Some(mut server) = server else { return drop(client.set_zero_linger()) };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let told = {
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = server.split();
        let pumps = async {
            tokio::join!(
                pump(&mut from_client, &mut to_server, state.clone(), born),
                pump(&mut from_server, &mut to_client, state.clone(), born),
            )
        };
        tokio::select! {
            _ = pumps => return,
            told = until_told.wait_for(|state| state.cuts > born.cuts || state.resets > born.resets) => {
                told.map(|state| *state).unwrap_or_default()
            }
        }
    };
    if told.resets > born.resets {
        let _ = (client.set_zero_linger(), server.set_zero_linger());
    }
}

/// One direction.
async fn pump(from: &mut ReadHalf<'_>, to: &mut WriteHalf<'_>, mut state: watch::Receiver<State>, born: State) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut buffer).await;
        // What has arrived here is not passed on either.
        let flows = |state: &State| !state.frozen && state.half_opens == born.half_opens;
        if state.wait_for(flows).await.is_err() {
            return;
        }
        match read {
            Ok(0) | Err(_) => return drop(to.shutdown().await),
            Ok(length) => {
                if to.write_all(&buffer[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// A server that says everything again, and a proxy for it.
    async fn echo() -> Proxy {
        let listener = listen(0).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        Proxy::start(port).await.expect("a proxy")
    }

    async fn connect(proxy: &Proxy) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).await.expect("a connection")
    }

    /// Whether what is said comes back.
    async fn flows(stream: &mut TcpStream) -> bool {
        stream.write_all(b"hello").await.expect("written");
        let mut heard = [0; 5];
        timeout(Duration::from_millis(300), stream.read_exact(&mut heard)).await.is_ok_and(|heard| heard.is_ok())
    }

    #[tokio::test]
    async fn what_is_cut_ends_and_what_is_reset_breaks() {
        let proxy = echo().await;
        let mut stream = connect(&proxy).await;
        assert!(flows(&mut stream).await);
        proxy.cut();
        assert_eq!(stream.read(&mut [0; 5]).await.expect("an end in good order"), 0);
        let mut stream = connect(&proxy).await;
        assert!(flows(&mut stream).await);
        proxy.reset();
        let error = stream.read(&mut [0; 5]).await.expect_err("no good order");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!(proxy.accepted(), 2);
    }

    #[tokio::test]
    async fn what_is_frozen_comes_later() {
        let proxy = echo().await;
        let mut stream = connect(&proxy).await;
        assert!(flows(&mut stream).await);
        proxy.freeze(true);
        assert!(!flows(&mut stream).await);
        assert!(!flows(&mut connect(&proxy).await).await, "so does a new one");
        proxy.freeze(false);
        let mut heard = [0; 5];
        stream.read_exact(&mut heard).await.expect("what was said");
        assert_eq!(&heard, b"hello");
    }

    #[tokio::test]
    async fn half_open_connections_hang_for_ever_and_new_ones_flow() {
        let proxy = echo().await;
        let mut stream = connect(&proxy).await;
        assert!(flows(&mut stream).await);
        proxy.half_open();
        assert!(!flows(&mut stream).await);
        assert!(flows(&mut connect(&proxy).await).await);
        assert!(!flows(&mut stream).await);
    }

    #[tokio::test]
    async fn a_closed_port_refuses_and_opens_again() {
        let proxy = echo().await;
        assert!(flows(&mut connect(&proxy).await).await);
        proxy.close(true);
        tokio::time::sleep(Duration::from_millis(100)).await;
        let refused = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).await.expect_err("closed");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        proxy.close(false);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(flows(&mut connect(&proxy).await).await);
    }
}
