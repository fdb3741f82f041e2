//! Objects of a real cluster, and as many more like them as a test needs.
//!
//! The lists are a kube-apiserver's own answers. [`Pods`] makes any number of pods of the 400 that there are: name, uid,
//! version, addresses, hashes and times of each are others, everywhere in the object.

#![allow(dead_code, unreachable_pub, reason = "each of those who include this uses a part of it")]

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::value::RawValue;

/// The names of the lists.
pub const LISTS: [(&str, &[u8]); 10] = [
    ("clusterroles", include_bytes!("clusterroles.json.zst")),
    ("configmaps", include_bytes!("configmaps.json.zst")),
    ("deployments", include_bytes!("deployments.json.zst")),
    ("endpointslices", include_bytes!("endpointslices.json.zst")),
    ("nodes", include_bytes!("nodes.json.zst")),
    ("pods", include_bytes!("pods.json.zst")),
    ("pods-large", include_bytes!("pods-large.json.zst")),
    ("replicasets", include_bytes!("replicasets.json.zst")),
    ("secrets", include_bytes!("secrets.json.zst")),
    ("services", include_bytes!("services.json.zst")),
];

/// The items of a list, as they stand there.
pub fn items(list: &str) -> Vec<String> {
    let (_, packed) = LISTS.iter().find(|(name, _)| *name == list).expect("a list of the corpus");
    let json = zstd::decode_all(*packed).expect("a list of the corpus");
    let mut list: BTreeMap<&str, &RawValue> = serde_json::from_slice(&json).expect("a list");
    let items: Vec<&RawValue> = serde_json::from_str(list.remove("items").expect("items").get()).expect("an array");
    items.into_iter().map(|item| item.get().to_owned()).collect()
}

/// Pods without end. The pod of a number is the same each time.
pub struct Pods {
    templates: Vec<Template>,
    seed: u64,
}

/// A pod in pieces: text that all pods of the template have, and places for what differs.
struct Template {
    json: String,
    pieces: Vec<Piece>,
    fields: Vec<Field>,
}

enum Piece {
    Text(Range<usize>),
    /// The number of a field.
    Field(usize),
}

/// What differs from pod to pod.
#[derive(Clone, Copy)]
enum Field {
    Uuid,
    Hex(usize),
    /// The alphabet of generated names.
    Generated(usize),
    Address,
    Time,
    Version,
}

impl Pods {
    pub fn new(seed: u64) -> Self {
        Self { templates: items("pods").into_iter().map(Template::new).collect(), seed }
    }

    /// Pods with another annotation and another image, as after a rollout.
    pub fn with_another_template(mut self) -> Self {
        let mut random = fastrand::Rng::with_seed(99);
        let noise: String = std::iter::repeat_with(|| random.alphanumeric()).take(1500).collect();
        for template in &mut self.templates {
            let json =
                template.json.replace("\"annotations\":{", &format!("\"annotations\":{{\"rollout\":\"{noise}\","));
            *template = Template::new(json);
        }
        self
    }

    /// A pod, as an item of a list: without kind.
    pub fn item(&self, number: usize) -> String {
        let template = &self.templates[number % self.templates.len()];
        template.fill(&mut fastrand::Rng::with_seed(self.seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// A pod, as an object of a watch: with its kind.
    pub fn pod(&self, number: usize) -> String {
        format!("{{\"kind\":\"Pod\",\"apiVersion\":\"v1\",{}", &self.item(number)[1..])
    }

    /// The numbers of the first `count` pods, sorted by namespace and name, as a server's lists are.
    pub fn sorted(&self, count: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..count).collect();
        numbers.sort_by_cached_key(|number| {
            let item = self.item(*number);
            let text = |field: &str| {
                let start = item.find(field).expect("a field") + field.len();
                item[start..].split('"').next().expect("its end").to_owned()
            };
            (text("\"namespace\":\""), text("\"name\":\""))
        });
        numbers
    }
}

impl Template {
    fn new(json: String) -> Self {
        let pod: serde_json::Value = serde_json::from_str(&json).expect("a pod");
        let mut tokens: Vec<(String, Field)> = Vec::new();
        let text = |pointer: &str| pod.pointer(pointer).and_then(serde_json::Value::as_str).map(str::to_owned);
        let name = text("/metadata/name").expect("a name");
        let suffix = name.rsplit('-').next().filter(|suffix| suffix.len() == 5).map(str::to_owned);
        let hash = text("/metadata/labels/pod-template-hash");
        tokens.extend([suffix, hash].into_iter().flatten().map(|part| {
            let length = part.len();
            (part, Field::Generated(length))
        }));
        tokens.push((format!("\"{}\"", text("/metadata/resourceVersion").expect("a version")), Field::Version));
        for address in ["/status/podIP", "/status/hostIP"].into_iter().filter_map(text) {
            tokens.push((address, Field::Address));
        }
        tokens.extend(hex_tokens(&json));
        tokens.extend(json.match_indices("2026-").filter_map(|(at, _)| {
            let time = json.get(at..at + 20)?;
            time.ends_with('Z').then(|| (time.to_owned(), Field::Time))
        }));
        tokens.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.0.cmp(&b.0)));
        tokens.dedup_by(|a, b| a.0 == b.0);
        let mut places: Vec<(usize, usize, usize)> = Vec::new();
        for (number, (token, _)) in tokens.iter().enumerate() {
            for (at, _) in json.match_indices(token.as_str()) {
                // A longer token was there first.
                if places.iter().all(|(start, length, _)| at + token.len() <= *start || start + length <= at) {
                    places.push((at, token.len(), number));
                }
            }
        }
        places.sort_unstable();
        let (mut pieces, mut end) = (Vec::new(), 0);
        for (at, length, number) in places {
            pieces.push(Piece::Text(end..at));
            pieces.push(Piece::Field(number));
            end = at + length;
        }
        pieces.push(Piece::Text(end..json.len()));
        Self { json, pieces, fields: tokens.into_iter().map(|(_, field)| field).collect() }
    }

    fn fill(&self, random: &mut fastrand::Rng) -> String {
        let values: Vec<String> = self.fields.iter().map(|field| field.value(random)).collect();
        let mut pod = String::with_capacity(self.json.len() + 64);
        for piece in &self.pieces {
            pod.push_str(match piece {
                Piece::Text(range) => &self.json[range.clone()],
                Piece::Field(number) => &values[*number],
            });
        }
        pod
    }
}

impl Field {
    fn value(self, random: &mut fastrand::Rng) -> String {
        let mut hex = |length: usize| -> String { (0..length).map(|_| random.digit(16)).collect() };
        match self {
            Self::Uuid => format!("{}-{}-4{}-8{}-{}", hex(8), hex(4), hex(3), hex(3), hex(12)),
            Self::Hex(length) => hex(length),
            Self::Generated(length) => (0..length)
                .map(|_| char::from(*random.choice(b"bcdfghjklmnpqrstvwxz2456789").unwrap_or(&b'b')))
                .collect(),
            Self::Address => format!("10.{}.{}.{}", random.u8(..), random.u8(..), random.u8(..)),
            Self::Time => {
                let (month, day) = (random.u8(1..=12), random.u8(1..=28));
                format!(
                    "2026-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
                    random.u8(..24),
                    random.u8(..60),
                    random.u8(..60)
                )
            }
            Self::Version => format!("\"{}\"", random.u32(1_000_000..99_999_999)),
        }
    }
}

/// Uuids and hashes. (Digests of images are the same for all pods of a template.)
fn hex_tokens(json: &str) -> Vec<(String, Field)> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let bytes = json.as_bytes();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|byte| is_hex(**byte)).count();
        let is_uuid = length == 8
            && json.get(at..at + 36).is_some_and(|text| {
                text.bytes().enumerate().all(|(n, byte)| match n {
                    8 | 13 | 18 | 23 => byte == b'-',
                    _ => is_hex(byte),
                })
            });
        if is_uuid {
            tokens.push((json[at..at + 36].to_owned(), Field::Uuid));
            at += 36;
        } else {
            if matches!(length, 32 | 40 | 64) && !json[..at].ends_with("@sha256:") {
                tokens.push((json[at..at + length].to_owned(), Field::Hex(length)));
            }
            at += length.max(1);
        }
    }
    tokens
}
