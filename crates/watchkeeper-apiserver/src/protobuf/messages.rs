//! What is known of a type: the numbers of its fields, their names in JSON, and what they are.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::LazyLock;

use serde::Deserialize;

/// The types of built-in kinds, unpacked once per process.
pub(super) static MESSAGES: LazyLock<Messages> = LazyLock::new(|| {
    let packed = include_bytes!("../../data/messages.json.gz");
    let mut text = String::new();
    // The data is part of the program, and a test reads it: it cannot be bad at run time.
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("packed messages");
    let packed: Packed = serde_json::from_str(&text).expect("messages");
    Messages::of(packed).expect("known types of fields")
});

/// All types, found by their index.
#[derive(Debug)]
pub(super) struct Messages {
    kinds: BTreeMap<String, usize>,
    types: Vec<Vec<Member>>,
}

/// A field of a type.
#[derive(Debug)]
pub(super) struct Member {
    number: u32,
    /// Empty: its own fields stand in its place.
    pub(super) name: Box<str>,
    pub(super) count: Count,
    pub(super) what: What,
    /// Go leaves it out of JSON if it is zero.
    pub(super) drops_zero: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    One,
    List,
    /// By texts.
    Map,
}

/// What a value is, and how JSON shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Text,
    Boolean,
    Integer,
    Float,
    Bytes,
    /// A list of texts in a message of its own.
    Texts,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// JSON, as it is.
    Raw,
    Message(usize),
    /// A schema with this index, or a list of them; or a boolean; or texts.
    SchemaOrList(usize),
    SchemaOrBoolean(usize),
    SchemaOrTexts(usize),
}

/// As `data/messages` writes it.
#[derive(Deserialize)]
struct Packed {
    kinds: BTreeMap<String, usize>,
    types: Vec<Vec<PackedMember>>,
}

/// Number, name, what it is, and whether its zero is not written.
type PackedMember = (u32, Box<str>, String, bool);

impl Messages {
    /// The type of a kind.
    pub(super) fn of_kind(&self, api_version: &str, kind: &str) -> Option<usize> {
        match kind {
            "DeleteOptions" => self.kinds.get(kind).copied(),
            _ => self.kinds.get(&format!("{api_version} {kind}")).copied(),
        }
    }

    /// A field, if the type has one with this number. Newer clients have more.
    pub(super) fn member(&self, index: usize, number: u32) -> Option<&Member> {
        let members = self.types.get(index)?;
        let at = members.binary_search_by_key(&number, |member| member.number).ok()?;
        members.get(at)
    }

    fn of(packed: Packed) -> Option<Self> {
        let member = |(number, name, code, drops_zero): PackedMember| {
            let (count, code) = match code.split_at_checked(1)? {
                ("*", item) => (Count::List, item),
                ("%", value) => (Count::Map, value),
                _ => (Count::One, code.as_str()),
            };
            Some(Member { number, name, count, what: What::of(code)?, drops_zero })
        };
        let types = packed.types.into_iter().map(|members| members.into_iter().map(member).collect());
        Some(Self { kinds: packed.kinds, types: types.collect::<Option<_>>()? })
    }
}

impl What {
    fn of(code: &str) -> Option<Self> {
        let (letter, index) = code.split_at_checked(1)?;
        let index = || index.parse().ok();
        Some(match letter {
            "s" => Self::Text,
            "o" => Self::Boolean,
            "i" => Self::Integer,
            "f" => Self::Float,
            "y" => Self::Bytes,
            "w" => Self::Texts,
            "t" => Self::Time,
            "u" => Self::MicroTime,
            "q" => Self::Quantity,
            "n" => Self::IntOrString,
            "r" => Self::Raw,
            "m" => Self::Message(index()?),
            "A" => Self::SchemaOrList(index()?),
            "B" => Self::SchemaOrBoolean(index()?),
            "S" => Self::SchemaOrTexts(index()?),
            _ => return None,
        })
    }
}
