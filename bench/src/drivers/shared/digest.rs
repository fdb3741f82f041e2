//! Do two caches hold the same?

use std::fmt;

use serde::{Deserialize, Deserializer};

/// How many objects there are, and a sum over `namespace/name@version` of each, in whichever order they come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Digest {
    pub(crate) objects: u64,
    #[serde(rename = "digest", deserialize_with = "hexadecimal")]
    sum: u64,
}

impl Digest {
    pub(crate) fn add(&mut self, namespace: &str, name: &str, version: &str) {
        self.objects += 1;
        let texts = [namespace, "/", name, "@", version];
        self.sum = self.sum.wrapping_add(fnv1a(texts.iter().flat_map(|text| text.bytes())));
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects with digest {:016x}", self.objects, self.sum)
    }
}

fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn hexadecimal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    u64::from_str_radix(&text, 16).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        // Of the published test vectors.
        assert_eq!(fnv1a("".bytes()), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("foobar".bytes()), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_digest_is_of_all_objects_in_any_order() {
        let of = |objects: &[[&str; 3]]| {
            let mut digest = Digest::default();
            objects.iter().for_each(|[namespace, name, version]| digest.add(namespace, name, version));
            digest
        };
        let (one, two) = (["shop", "web", "1"], ["bank", "db", "2"]);
        assert_eq!(of(&[one, two]), of(&[two, one]));
        assert_ne!(of(&[one, two]), of(&[one, ["bank", "db", "3"]]));
        let sum = fnv1a("shop/web@1".bytes());
        let told = format!(r#"{{"objects": 1, "digest": "{sum:016x}"}}"#);
        assert_eq!(serde_json::from_str::<Digest>(&told).ok(), Some(of(&[one])));
    }
}
