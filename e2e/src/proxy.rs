//! A TCP proxy that can be made to fail.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::Context as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
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
async fn serve(client: TcpStream, target: u16, mut state: watch::Receiver<State>) {
    let born = *state.borrow();
    let mut until_told = state.clone();
    let server = tokio::select! {
        server = async {
            state.wait_for(|state| !state.frozen).await.ok()?;
            TcpStream::connect((Ipv4Addr::LOCALHOST, target)).await.ok()
        } => server,
        _ = until_told.wait_for(|state| state.cuts > born.cuts || state.resets > born.resets) => None,
    };
    // To a server that is not there, nobody can be connected.
    let Some(server) = server else { return drop(client.set_zero_linger()) };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let pumps = async {
        tokio::join!(
            pump(&mut from_client, &mut to_server, state.clone(), born),
            pump(&mut from_server, &mut to_client, state.clone(), born),
        )
    };
    tokio::select! {
        _ = pumps => {}
        told = until_told.wait_for(|state| state.cuts > born.cuts || state.resets > born.resets) => {
            if told.is_ok_and(|state| state.resets > born.resets) {
                let _ = (to_client.as_ref().set_zero_linger(), to_server.as_ref().set_zero_linger());
            }
        }
    }
}

/// One direction.
async fn pump(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, mut state: watch::Receiver<State>, born: State) {
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
