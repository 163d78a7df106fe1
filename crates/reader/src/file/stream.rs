//! Copies a trace from a pipe and checks it on the way: input that is not a trace, or never ends, must not fill the
//! disk.

use std::io::{self, Read, Write};

use et_format::{BLOCK_HEADER, BlockHeader, FILE_HEADER, FormatError};

/// Copies block after block up to the end or to the first bytes that are not a block, where a reader will find the
/// trace to be damaged.
pub(super) fn copy(mut stream: impl Read, mut out: impl Write) -> io::Result<Result<(), FormatError>> {
    let header = up_to(&mut stream, FILE_HEADER)?;
    if let Err(why) = et_format::check_file_header(&header) {
        return Ok(Err(why));
    }
    out.write_all(&header)?;
    loop {
        let header = up_to(&mut stream, BLOCK_HEADER)?;
        out.write_all(&header)?;
        let Ok(Some(header)) = BlockHeader::decode(&header) else { return Ok(Ok(())) };
        let length = u64::from(header.stored_len);
        if io::copy(&mut stream.by_ref().take(length), &mut out)? < length {
            return Ok(Ok(()));
        }
    }
}

/// Reads `length` bytes, or fewer at the end of the stream.
fn up_to(stream: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length);
    stream.take(length as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TraceBuilder;

    #[test]
    fn a_trace_is_copied_and_what_is_none_is_not() {
        let trace = TraceBuilder::new().problem("odd", 1).finish();
        let mut out = Vec::new();
        copy(trace.as_slice(), &mut out).unwrap().unwrap();
        assert_eq!(out, trace);
        out.clear();
        assert_eq!(copy(io::repeat(0), &mut out).unwrap(), Err(FormatError::FileMagic));
        assert_eq!(out, b"");
        // An endless stream after the end of the trace is not copied.
        copy(trace.as_slice().chain(io::repeat(0)), &mut out).unwrap().unwrap();
        assert_eq!(out.len(), trace.len() + BLOCK_HEADER);
    }
}
