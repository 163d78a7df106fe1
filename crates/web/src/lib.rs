//! A page that a command serves to its user: on a loopback address, below a secret token.

mod answer;
mod guard;

use std::fs::File;
use std::io::{self, Read};
use std::net::Ipv4Addr;

use tokio::net::TcpListener;

pub use answer::failure;
pub use guard::{Guard, Token, guarded};

/// Creates a random token.
///
/// # Errors
/// The system has no random numbers.
pub fn new_token() -> io::Result<Token> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(Token::new(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// A port that cannot be listened on.
#[derive(Debug)]
pub struct PortError {
    pub port: u16,
    pub source: io::Error,
}

/// Listens on a port, or, if none is given, on the usual one or any that is free.
///
/// # Errors
/// The port is taken, or may not be listened on.
pub async fn listen(port: Option<u16>, usual: u16) -> Result<TcpListener, PortError> {
    let bind =
        async |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(|source| PortError { port, source });
    match port {
        Some(port) => bind(port).await,
        None => match bind(usual).await {
            Ok(listener) => Ok(listener),
            Err(_) => bind(0).await,
        },
    }
}
