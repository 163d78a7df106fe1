//! Ports where debuggers find VMs. A debugger believes that it speaks to the VM: the monitor answers its handshake and passes the rest on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use et_ddm::packet::{HANDSHAKE, PacketDecoder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::aside::aside;
use crate::connection::{Connection, DebuggerIn, MOST_PACKET};

/// How long a debugger may take to say what it is.
const GREETING: Duration = Duration::from_secs(10);

/// The VM that a debugger is connected to, which is notified when it attaches and detaches.
pub trait Target: Send + Sync + 'static {
    /// The VM, if there is one now.
    fn connection(&self) -> Option<Connection>;

    /// A debugger has come or gone.
    fn changed(&self, connection: &Connection);
}

/// Accepts debuggers forever.
pub async fn serve(listener: TcpListener, target: Arc<impl Target>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => drop(tokio::spawn(session(stream, peer, target.clone()))),
            // Too many open files, say: others may close some.
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

async fn session(stream: TcpStream, peer: SocketAddr, target: Arc<impl Target>) {
    // A debugger can run any code in the VM, and JDWP has no passwords: other users of the machine are turned away.
    let Ok(here) = stream.local_addr() else { return };
    if !aside(move || et_system::peers::is_trusted(peer, here)).await.unwrap_or(false) {
        return;
    }
    let _ = stream.set_nodelay(true);
    let (mut from, mut to) = stream.into_split();
    let mut greeting = [0; HANDSHAKE.len()];
    match timeout(GREETING, from.read_exact(&mut greeting)).await {
        Ok(Ok(_)) if greeting == *HANDSHAKE => {}
        _ => return,
    }
    // Without a VM, or with another debugger, the connection closes: what a VM does that takes one only.
    let Some(connection) = target.connection() else { return };
    let Some(mut debugger) = connection.attach_debugger() else { return };
    let session = debugger.session;
    target.changed(&connection);
    if to.write_all(HANDSHAKE).await.is_ok() {
        tokio::select! {
            () = to_debugger(&mut debugger, &mut to) => {}
            () = from_debugger(&mut from, &connection, session) => {}
        }
    }
    connection.detach_debugger(session).await;
    target.changed(&connection);
}

async fn to_debugger(debugger: &mut DebuggerIn, to: &mut OwnedWriteHalf) {
    while let Some(packet) = debugger.next().await {
        if to.write_all(&packet).await.is_err() {
            return;
        }
    }
}

async fn from_debugger(from: &mut OwnedReadHalf, connection: &Connection, session: u64) {
    let mut decoder = PacketDecoder::after_handshake(MOST_PACKET);
    let mut bytes = vec![0; 64 << 10];
    loop {
        loop {
            match decoder.next_packet() {
                Ok(Some(packet)) => {
                    // DDM commands from a debugger are dropped.
                    if !packet.is_ddm() && connection.pass_on(session, packet).await.is_err() {
                        return;
                    }
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
        match from.read(&mut bytes).await {
            Ok(0) | Err(_) => return,
            Ok(count) => decoder.push(&bytes[..count]),
        }
    }
}
