//! Files inside the program, which are compressed there: most processes need only a few.

use std::io::{Read as _, Write as _};

use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};

/// A file inside the program.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddedFile {
    bytes: usize,
    compressed: &'static [u8],
}

impl EmbeddedFile {
    /// Takes a file of this many bytes, compressed as a zlib stream.
    pub const fn new(bytes: usize, compressed: &'static [u8]) -> Self {
        Self { bytes, compressed }
    }

    /// Returns the number of bytes.
    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// Returns `true` if the file has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns the content.
    ///
    /// # Panics
    ///
    /// Panics if the bytes are not such a stream: the program was built wrong.
    pub fn read(&self) -> Vec<u8> {
        let mut content = Vec::with_capacity(self.bytes);
        ZlibDecoder::new(self.compressed)
            .read_to_end(&mut content)
            .expect("the build compressed it");
        assert_eq!(content.len(), self.bytes, "the build counted its bytes");
        content
    }
}

/// Compresses a file for [`EmbeddedFile::new`], as the build script of the program does.
pub fn compress(content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder
        .write_all(content)
        .and_then(|()| encoder.finish())
        .expect("memory takes all bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_compressed() {
        let content = b"a field, a field, a field".repeat(100);
        let compressed: &'static [u8] = Box::leak(compress(&content).into_boxed_slice());
        assert!(compressed.len() < content.len() / 10);
        let file = EmbeddedFile::new(content.len(), compressed);
        assert_eq!((file.read(), file.len()), (content, 2500));
    }
}
