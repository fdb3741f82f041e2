//! A body, compressed.
//!
//! Objects of one kind are alike: next to a dictionary of a few of them, what is left of a pod of 7.7 KB is names, uids,
//! hashes and times, some 450 bytes. A packed body knows the dictionary that it needs, so that several generations of
//! dictionaries can be in use, and each lives for as long as a body needs it.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use triomphe::ThinArc;
use zstd::zstd_safe::{self, CCtx, CDict, DCtx, DDict};

/// What bodies are compressed against.
pub(crate) struct Dictionary {
    encoder: CDict<'static>,
    decoder: DDict<'static>,
}

/// How hard zstd tries where there is no dictionary.
const PLAIN_LEVEL: i32 = 3;

impl Dictionary {
    /// A dictionary of these bytes: parts of objects, or what zstd's trainer made of them.
    pub(crate) fn new(content: &[u8], level: i32) -> Option<Self> {
        Some(Self { encoder: CDict::try_create(content, level)?, decoder: DDict::try_create(content)? })
    }

    /// What it takes to unpack: its content, and a little more.
    #[cfg(test)]
    pub(crate) fn memory_of_content(&self) -> usize {
        self.decoder.sizeof()
    }

    /// What it takes in memory, all of it zstd's.
    pub(crate) fn memory(&self) -> usize {
        self.encoder.sizeof() + self.decoder.sizeof()
    }
}

/// A compressed body. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Packed(ThinArc<Option<Arc<Dictionary>>, u8>);

thread_local! {
    /// Contexts are large and slow to make, so each thread keeps one of each.
    static COMPRESS: RefCell<(CCtx<'static>, Vec<u8>)> = RefCell::new((CCtx::create(), Vec::new()));
    static DECOMPRESS: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

impl Packed {
    /// Packs a body. `None` if that does not save a tenth of it.
    pub(crate) fn pack(json: &[u8], dictionary: Option<&Arc<Dictionary>>) -> Option<Self> {
        COMPRESS.with_borrow_mut(|(context, out)| {
            out.clear();
            out.reserve(zstd_safe::compress_bound(json.len()));
            let written = match dictionary {
                Some(dictionary) => context.compress_using_cdict(out, json, &dictionary.encoder),
                None => context.compress(out, json, PLAIN_LEVEL),
            };
            let worthwhile = written.is_ok() && out.len() <= json.len() - json.len() / 10;
            let packed = worthwhile.then(|| Self(ThinArc::from_header_and_slice(dictionary.cloned(), out)));
            // One huge object shall not cost its size for ever.
            out.shrink_to(256 << 10);
            packed
        })
    }

    /// The body, as it was. `None` if memory is short, or broken.
    pub(crate) fn unpack(&self) -> Option<Bytes> {
        let frame = &self.0.slice;
        let length = zstd_safe::get_frame_content_size(frame).ok().flatten()?;
        let mut body = Vec::new();
        body.try_reserve_exact(usize::try_from(length).ok()?).ok()?;
        DECOMPRESS.with_borrow_mut(|context| {
            match &self.0.header.header {
                Some(dictionary) => context.decompress_using_ddict(&mut body, frame, &dictionary.decoder),
                None => context.decompress(&mut body, frame),
            }
            .ok()
        })?;
        Some(Bytes::from(body))
    }

    /// How many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        self.0.slice.len()
    }

    /// How many bytes it takes, with what stands before them: a count of references, the dictionary, a length.
    pub(crate) fn memory(&self) -> usize {
        3 * size_of::<usize>() + self.size()
    }

    /// The dictionary that it needs.
    pub(crate) fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.0.header.header.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_as_it_was_whatever_the_dictionary() {
        let json = br#"{"metadata":{"name":"web-0","namespace":"shop"},"spec":{"nodeName":"node-1"}}"#.repeat(9);
        let dictionary = Arc::new(Dictionary::new(&json, 1).expect("a dictionary"));
        for dictionary in [None, Some(&dictionary)] {
            let packed = Packed::pack(&json, dictionary).expect("smaller");
            assert!(packed.size() < json.len() / 4);
            assert_eq!(packed.unpack().expect("unpacked"), json);
        }
    }

    #[test]
    fn what_does_not_shrink_by_a_tenth_is_not_packed() {
        let mut random = fastrand::Rng::with_seed(7);
        let noise: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(10_000).collect();
        assert!(Packed::pack(&noise, None).is_none());
        assert!(Packed::pack(b"", None).is_none());
        assert!(Packed::pack(b"{}", None).is_none());
    }
}
