//! What tells states of objects apart: uid, version, and a hash of the bytes.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::{Deref, DerefMut};

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use watchkeeper::{Object, Snapshot};
use watchkeeper_e2e::Failure;

use crate::views::{Form, View};

/// How many differences are told one by one.
const TOLD: usize = 10;

/// A state of an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Digest {
    pub(crate) uid: String,
    pub(crate) version: String,
    bytes: u64,
}

impl Digest {
    /// Of an object in a cache.
    pub(crate) fn of(object: &Object) -> Result<Self, Failure> {
        let json = object.json().context("an object cannot be unpacked")?;
        let version = object.resource_version().as_str().to_owned();
        Ok(Self { uid: object.uid().unwrap_or_default().to_owned(), version, bytes: hash(&json) })
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// States by key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Digests(BTreeMap<String, Digest>);

impl Digests {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Of all that is in a cache.
    pub(crate) fn of_cache(objects: &Snapshot<Object>) -> Result<Self, Failure> {
        let digests = objects.iter().map(|(key, object)| Ok((key.to_string(), Digest::of(object)?)));
        Ok(Self(digests.collect::<Result<_, Failure>>()?))
    }

    /// What is not the same in both, with what each is called.
    pub(crate) fn differences(&self, other: &Self, one: &str, another: &str) -> Vec<String> {
        let missing = other.0.iter().filter(|(key, _)| !self.0.contains_key(*key)).map(|(key, _)| (key, None));
        let mine = self.0.iter().map(|(key, digest)| (key, Some(digest)));
        let differ: Vec<_> = mine
            .chain(missing)
            .map(|(key, digest)| (key, digest, other.0.get(key)))
            .filter(|(_, mine, theirs)| mine != theirs)
            .collect();
        let more = differ.len().saturating_sub(TOLD);
        let tell = |(key, mine, theirs): (&String, Option<&Digest>, Option<&Digest>)| {
            format!("{key} differs: {one} {mine:?}, {another} {theirs:?}")
        };
        let told = differ.into_iter().take(TOLD).map(tell);
        told.chain((more > 0).then(|| format!("and {more} more differ"))).collect()
    }
}

impl Deref for Digests {
    type Target = BTreeMap<String, Digest>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Digests {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

#[derive(Deserialize)]
struct List<'a> {
    metadata: ListMetadata,
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
    #[serde(default)]
    r#continue: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    kind: Option<String>,
    api_version: Option<String>,
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}

/// What the server has of a view: by lists of our own making, one for each namespace, each a consistent read of everything
/// at once. Nothing of the library's reading of lists is in it.
pub(crate) async fn of_server(client: &kube::Client, view: &View) -> Result<(Digests, Vec<String>), Failure> {
    let mut digests = Digests::new();
    let mut versions = Vec::new();
    for namespace in view.partitions() {
        let mut query = url_query(&[("labelSelector", &view.labels), ("fieldSelector", &view.fields)]);
        query.insert_str(0, &view.kind.path(namespace));
        let accept = match view.form {
            Form::Metadata => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Form::Typed | Form::Dynamic => "application/json",
        };
        let request = http::Request::get(&query).header("accept", accept).body(Vec::new())?;
        let text = client.request_text(request).await.with_context(|| format!("list {query}"))?;
        let list: List<'_> = serde_json::from_str(&text).with_context(|| format!("the list {query}"))?;
        anyhow::ensure!(list.metadata.r#continue.is_empty(), "{query} has another page");
        for item in list.items {
            let (key, digest) = of_item(item.get(), view)?;
            anyhow::ensure!(digests.insert(key.clone(), digest).is_none(), "{key} is twice in {query}");
        }
        versions.push(list.metadata.resource_version);
    }
    Ok((digests, versions))
}

/// Items of built-in kinds do not say their kind; events of a watch do, and the cache has them all like that.
fn of_item(text: &str, view: &View) -> Result<(String, Digest), Failure> {
    let item: Item = serde_json::from_str(text).context("an item")?;
    let bytes = if item.kind.is_none() && item.api_version.is_none() {
        let resource = view.kind.resource();
        let (kind, api_version) = match view.form {
            Form::Metadata => ("PartialObjectMetadata", "meta.k8s.io/v1"),
            Form::Typed | Form::Dynamic => (&*resource.kind, &*resource.api_version),
        };
        hash(format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",{}", &text[1..]).as_bytes())
    } else {
        hash(text.as_bytes())
    };
    let Metadata { namespace, name, uid, resource_version } = item.metadata;
    let key = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
    Ok((key, Digest { uid, version: resource_version, bytes }))
}

fn url_query(pairs: &[(&str, &Option<String>)]) -> String {
    let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let given = pairs.iter().filter_map(|(name, value)| Some(format!("{name}={}", encode(value.as_ref()?))));
    format!("?{}", given.collect::<Vec<_>>().join("&"))
}
