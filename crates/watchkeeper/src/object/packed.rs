//! A body, made small: compressed, or as what differs from another one that is.
//!
//! Objects of one kind are alike: next to a dictionary of a few of them, what is left of a pod of 7.7 KB is names, uids,
//! hashes and times, some 450 bytes. A packed body knows the dictionary that it needs, so that several generations of
//! dictionaries can be in use, and each lives for as long as a body needs it.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use triomphe::ThinArc;
use zstd::zstd_safe::{self, CCtx, CDict, DCtx, DDict};

use super::splice;

/// What bodies are compressed against.
pub(crate) struct Dictionary {
    encoder: CDict<'static>,
    decoder: DDict<'static>,
    is_trained: bool,
}

/// What zstd's trainer makes begins with this.
const TRAINED: [u8; 4] = 0xec30_a437_u32.to_le_bytes();

/// How hard zstd tries where there is no dictionary.
const PLAIN_LEVEL: i32 = 3;

impl Dictionary {
    /// A dictionary of these bytes: parts of objects, or what zstd's trainer made of them.
    pub(crate) fn new(content: &[u8], level: i32) -> Option<Self> {
        let (encoder, decoder) = (CDict::try_create(content, level)?, DDict::try_create(content)?);
        Some(Self { encoder, decoder, is_trained: content.starts_with(&TRAINED) })
    }

    /// zstd's trainer has made it, and not just parts of objects.
    pub(crate) fn is_trained(&self) -> bool {
        self.is_trained
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
    /// The body of a base.
    static UNPACKED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// A splice that is being made.
    static SPLICE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// One huge object shall not cost its size for ever.
const LARGEST_SCRATCH: usize = 256 << 10;

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
            out.shrink_to(LARGEST_SCRATCH);
            packed
        })
    }

    /// The body, as it was. `None` if memory is short, or broken.
    pub(crate) fn unpack(&self) -> Option<Bytes> {
        let mut body = Vec::new();
        self.unpack_into(&mut body)?;
        Some(Bytes::from(body))
    }

    fn unpack_into(&self, body: &mut Vec<u8>) -> Option<()> {
        let frame = &self.0.slice;
        let length = zstd_safe::get_frame_content_size(frame).ok().flatten()?;
        body.clear();
        body.try_reserve_exact(usize::try_from(length).ok()?).ok()?;
        DECOMPRESS.with_borrow_mut(|context| {
            match &self.0.header.header {
                Some(dictionary) => context.decompress_using_ddict(body, frame, &dictionary.decoder),
                None => context.decompress(body, frame),
            }
            .ok()
        })?;
        Some(())
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

    /// It needs this dictionary.
    pub(crate) fn is_against(&self, dictionary: &Arc<Dictionary>) -> bool {
        self.dictionary().is_some_and(|of| Arc::ptr_eq(of, dictionary))
    }

    /// Somebody else has a clone, besides whoever has `clones` of them.
    pub(crate) fn is_held_besides(&self, clones: usize) -> bool {
        ThinArc::strong_count(&self.0) > clones
    }

    /// Where it is: clones of one are in one place.
    pub(crate) fn address(&self) -> usize {
        self.0.as_ptr().addr()
    }
}

/// What a body may be spliced onto.
#[derive(Clone)]
pub(crate) struct Base {
    pub(crate) packed: Packed,
    /// It is there in any case, because other objects are spliced onto it too.
    pub(crate) is_shared: bool,
}

/// A body that is kept as what differs from another: an earlier state of the object, or another object that is much like it.
/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Spliced(ThinArc<Packed, u8>);

/// What a splice begins with: whether its base is shared.
const OWN: u8 = 0;
const SHARED: u8 = 1;

impl Spliced {
    /// Keeps `json` as what differs from `base`. `None` if it is better packed anew.
    pub(crate) fn onto(base: &Base, json: &[u8]) -> Option<Self> {
        UNPACKED.with_borrow_mut(|body| {
            base.packed.unpack_into(body)?;
            let spliced = Self::onto_unpacked(base, body, json);
            body.shrink_to(LARGEST_SCRATCH);
            spliced
        })
    }

    /// The same, if the base's body is at hand. What differs may take as much as the packed base does, or half of that if the base
    /// is kept for this one alone.
    pub(crate) fn onto_unpacked(base: &Base, body: &[u8], json: &[u8]) -> Option<Self> {
        // One that was much larger would be kept whole for little.
        if body.len() / 2 > json.len() {
            return None;
        }
        let (kind, room) = if base.is_shared { (SHARED, base.packed.size()) } else { (OWN, base.packed.size() / 2) };
        SPLICE.with_borrow_mut(|out| {
            out.clear();
            out.push(kind);
            let is_small = splice::cut(body, json, room, out);
            let spliced = is_small.then(|| Self(ThinArc::from_header_and_slice(base.packed.clone(), out)));
            out.shrink_to(LARGEST_SCRATCH);
            spliced
        })
    }

    /// The same body, on a base that has been packed anew.
    pub(crate) fn on_repacked(&self, base: Packed) -> Self {
        Self(ThinArc::from_header_and_slice(base, &self.0.slice))
    }

    /// The body, as it was. `None` if memory is short, or broken.
    pub(crate) fn unpack(&self) -> Option<Bytes> {
        let (_, splice) = self.0.slice.split_first()?;
        UNPACKED.with_borrow_mut(|body| {
            self.packed().unpack_into(body)?;
            let json = splice::join(body, splice);
            body.shrink_to(LARGEST_SCRATCH);
            json.map(Bytes::from)
        })
    }

    /// What it is spliced onto.
    pub(crate) fn base(&self) -> Base {
        Base { packed: self.packed().clone(), is_shared: self.is_shared() }
    }

    pub(crate) fn packed(&self) -> &Packed {
        &self.0.header.header
    }

    /// Other objects are spliced onto its base, too.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.slice.first() == Some(&SHARED)
    }

    /// How many bytes it takes, with a base of its own.
    pub(crate) fn size(&self) -> usize {
        self.0.slice.len() + if self.is_shared() { 0 } else { self.packed().size() }
    }

    /// How many bytes it takes, with a base of its own and what stands before both.
    pub(crate) fn memory(&self) -> usize {
        let base = if self.is_shared() { 0 } else { self.packed().memory() };
        3 * size_of::<usize>() + self.0.slice.len() + base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spliced_comes_out_as_it_was_and_takes_less_than_half_more() {
        let json = |version: &str| {
            let noise = fastrand::Rng::with_seed(3).u128(..);
            format!(r#"{{"metadata":{{"name":"web-0","resourceVersion":"{version}"}},"spec":{{"uid":"{noise}"}}}}"#)
                .repeat(9)
        };
        let packed = Packed::pack(json("1").as_bytes(), None).expect("smaller");
        let base = Base { packed: packed.clone(), is_shared: false };
        for version in ["1", "2", "10", ""] {
            let spliced = Spliced::onto(&base, json(version).as_bytes()).expect("little has changed");
            assert_eq!(spliced.unpack().expect("unpacked"), json(version));
            assert!(spliced.size() <= packed.size() * 3 / 2);
        }
        assert!(Spliced::onto(&base, &[b'x'; 1_000]).is_none());
    }

    #[test]
    fn what_is_spliced_onto_a_base_of_others_takes_no_more_than_packing_would_and_moves_with_it() {
        let json = |noise: u64| {
            let uid = fastrand::Rng::with_seed(noise).u128(..);
            format!(r#"{{"metadata":{{"name":"web-{noise}","uid":"{uid:032x}"}},"spec":{{"uid":"{uid:032x}"}}}}"#)
        };
        let packed = Packed::pack(json(1).as_bytes(), None).expect("smaller");
        let base = Base { packed: packed.clone(), is_shared: true };
        let spliced = Spliced::onto(&base, json(2).as_bytes()).expect("they are alike");
        assert!(spliced.is_shared() && spliced.size() <= packed.size(), "{} {}", spliced.size(), packed.size());
        let again = Packed::pack(json(1).as_bytes(), Some(&Arc::new(Dictionary::new(json(3).as_bytes(), 1).unwrap())));
        let moved = spliced.on_repacked(again.expect("smaller"));
        assert!(moved.is_shared() && moved.packed().address() != packed.address());
        assert_eq!(moved.unpack().expect("unpacked"), json(2));
    }

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

    /// What is left of an object that was large must not keep all that it was.
    #[test]
    fn no_base_is_kept_that_is_much_larger_than_the_body() {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut large, mut small) = (String::from("{"), String::from("{"));
        for number in 0..2_000 {
            let (kept, gone) =
                (random.u128(..), std::iter::repeat_with(|| random.alphanumeric()).take(650).collect::<String>());
            let kept = format!(r#""{number:08}":"{kept:032x}","#);
            large += &kept;
            large += &format!(r#""{gone}":0,"#);
            small += &kept;
        }
        // Their ends are the same.
        large += &"x".repeat(99);
        small += &"x".repeat(99);
        let packed = Packed::pack(large.as_bytes(), None).expect("smaller");
        for is_shared in [false, true] {
            let spliced = Spliced::onto(&Base { packed: packed.clone(), is_shared }, small.as_bytes());
            let kept = spliced.map(|spliced| (spliced.size(), spliced.packed().size()));
            assert_eq!(
                kept,
                None,
                "of {} bytes, which take {} packed",
                small.len(),
                Packed::pack(small.as_bytes(), None).expect("smaller").size()
            );
        }
    }
}
