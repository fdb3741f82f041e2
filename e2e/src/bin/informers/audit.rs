//! What the server says it was asked, by its audit log.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use watchkeeper_e2e::Failure;

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "auditID")]
    id: String,
    #[serde(rename = "requestURI")]
    uri: String,
    #[serde(rename = "responseStatus")]
    status: Option<Status>,
}

#[derive(Deserialize)]
struct Status {
    code: Option<u16>,
}

/// What was asked with one tag in one namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    /// Lists that were answered: first pages, and streaming lists.
    pub(crate) lists: u64,
    /// Those of them that were streaming lists.
    pub(crate) streams: u64,
    /// Later pages that were answered.
    pub(crate) pages: u64,
    /// Lists and pages that were told that the version is gone.
    pub(crate) expired: u64,
    /// Those of them that were later pages.
    pub(crate) expired_pages: u64,
    /// Lists and pages that were refused for other reasons.
    pub(crate) refused: u64,
    /// Watches that were answered, streaming lists not counted.
    pub(crate) watches: u64,
    pub(crate) refused_watches: u64,
}

impl Requests {
    /// All requests whose tag begins so, by tag and path.
    pub(crate) fn read(log: &Path, tags: &str) -> Result<BTreeMap<(String, String), Self>, Failure> {
        let text = fs::read_to_string(log).context("the audit log cannot be read")?;
        let mut requests: BTreeMap<(String, String), Self> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for line in text.lines() {
            // The last line may be half written.
            let Ok(entry) = serde_json::from_str::<Entry>(line) else { continue };
            let Some((path, query)) = entry.uri.split_once('?') else { continue };
            let parameter = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
            let Some(tag) = parameter("tag").filter(|tag| tag.starts_with(tags)) else { continue };
            // A watch is told twice: when it begins and when it ends.
            if !seen.insert(entry.id) {
                continue;
            }
            let of = requests.entry((tag.to_owned(), path.to_owned())).or_default();
            let code = entry.status.and_then(|status| status.code).unwrap_or_default();
            let stream = parameter("sendInitialEvents") == Some("true");
            let list = parameter("watch").is_none() || stream;
            let counter = match (list, code) {
                (true, 410) => {
                    of.expired_pages += u64::from(parameter("continue").is_some());
                    &mut of.expired
                }
                (true, 200) if parameter("continue").is_some() => &mut of.pages,
                (true, 200) => {
                    of.streams += u64::from(stream);
                    &mut of.lists
                }
                (true, _) => &mut of.refused,
                (false, 200) => &mut of.watches,
                (false, _) => &mut of.refused_watches,
            };
            *counter += 1;
        }
        Ok(requests)
    }
}
