//! Files of any size as an answer: made by a thread as they are sent, and kept nowhere.

use std::io::{self, Write};

use axum::body::Body;
use futures_util::stream;
use tokio::sync::mpsc::{Receiver, Sender, channel};

type Chunk = io::Result<Vec<u8>>;

/// Bytes of a chunk.
const CHUNK: usize = 256 << 10;
/// Chunks that wait for a slow client at most.
const WAITING: usize = 4;

struct Out {
    chunks: Sender<Chunk>,
    chunk: Vec<u8>,
}

impl Out {
    fn send(&mut self) -> io::Result<()> {
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK));
        // The client may have gone.
        self.chunks.blocking_send(Ok(chunk)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.chunk.extend_from_slice(bytes);
        if self.chunk.len() >= CHUNK {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() { Ok(()) } else { self.send() }
    }
}

/// A body that `write` makes on a thread of its own. If it fails, the body ends in an error, not as if it were whole.
pub(crate) fn body(write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static) -> Body {
    let (chunks, receiver) = channel::<Chunk>(WAITING);
    tokio::task::spawn_blocking(move || {
        let mut out = Out { chunks, chunk: Vec::with_capacity(CHUNK) };
        if let Err(error) = write(&mut out).and_then(|()| out.flush()) {
            // Nobody is left to tell if this fails.
            let _ = out.chunks.blocking_send(Err(error));
        }
    });
    let next = |mut receiver: Receiver<Chunk>| async move { Some((receiver.recv().await?, receiver)) };
    Body::from_stream(stream::unfold(receiver, next))
}
