//! Compressed chunks. The data of a `ZLIB` chunk:
//!
//! ```text
//! u4 type of the compressed chunk
//! u4 its length
//! var its data in the zlib format (RFC 1950)
//! ```
//!
//! The length of the `ZLIB` chunk includes all of that, so that a receiver that does not know the type can skip it like
//! any other.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;

use crate::chunk::{Chunk, ChunkType};
use crate::wire::{Malformed, Reader, Writer};

const WHAT: &str = "a ZLIB chunk";

/// The chunk, compressed; as it was if that is not shorter.
pub fn compress(chunk: Chunk) -> Chunk {
    if chunk.kind == ChunkType::ZLIB {
        return chunk;
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let Ok(packed) = encoder.write_all(&chunk.data).and_then(|()| encoder.finish()) else { return chunk };
    if packed.len() + 8 >= chunk.data.len() {
        return chunk;
    }
    let data = Writer::default().bytes(&chunk.kind.0).count(chunk.data.len()).bytes(&packed).finish();
    Chunk::new(ChunkType::ZLIB, data)
}

/// The chunk in the data of a `ZLIB` chunk; `limit` is the most it may come to. Memory grows with what comes out, whatever is claimed.
pub fn expand(data: &[u8], limit: usize) -> Result<Chunk, Malformed> {
    let mut reader = Reader::new(WHAT, data);
    let mut kind = [0; 4];
    kind.copy_from_slice(reader.take(4)?);
    let length = reader.u4()?;
    // One within the other could go on for ever.
    if ChunkType(kind) == ChunkType::ZLIB {
        return reader.wrong(u32::from_be_bytes(kind));
    }
    if length as usize > limit {
        return Err(Malformed::TooLong { what: WHAT, length: u64::from(length), limit });
    }
    let mut data = Vec::new();
    let mut decoder = ZlibDecoder::new(reader.rest());
    let read = decoder.by_ref().take(u64::from(length) + 1).read_to_end(&mut data);
    if read.is_err() || data.len() != length as usize || !decoder.into_inner().is_empty() {
        return Err(Malformed::Compressed { what: WHAT });
    }
    Ok(Chunk { kind: ChunkType(kind), data })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chunk::{decode, encode};

    proptest! {
        #[test]
        fn compressed_chunks_come_back(data in prop::collection::vec(0..4_u8, 0..2000)) {
            let chunk = Chunk::new(ChunkType::HPSG, data);
            let compressed = compress(chunk.clone());
            prop_assert!(compressed.data.len() <= chunk.data.len());
            prop_assert_eq!(decode(&encode(&[compressed])), Ok(vec![chunk]));
        }
    }

    #[test]
    fn claims_are_checked() {
        let compressed = compress(Chunk::new(ChunkType::HPSG, vec![0; 100_000]));
        assert_eq!(compressed.kind, ChunkType::ZLIB);
        let mut data = compressed.data;
        assert_eq!(
            expand(&data, 99_999).unwrap_err().to_string(),
            "a ZLIB chunk of 100000 bytes: at most 99999 are accepted"
        );
        data[7] ^= 1;
        assert_eq!(expand(&data, 1 << 20), Err(Malformed::Compressed { what: WHAT }));
        data[7] ^= 1;
        data.push(9);
        assert_eq!(expand(&data, 1 << 20), Err(Malformed::Compressed { what: WHAT }), "something follows");
        data.pop();
        data.truncate(data.len() - 1);
        assert_eq!(expand(&data, 1 << 20), Err(Malformed::Compressed { what: WHAT }));
        let mut nested = b"ZLIB\0\0\0\0".to_vec();
        nested.extend(&data);
        assert!(expand(&nested, 1 << 20).is_err());
    }
}
