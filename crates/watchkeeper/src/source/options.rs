//! What a list or a watch asks for.

use std::time::Duration;

use crate::ResourceVersion;

/// The options of one list or watch request: client-go's `metav1.ListOptions`.
///
/// The reflector fills in versions, limits, timeouts and bookmarks. A [tweak](crate::ListWatch::tweak) may change
/// selectors and add pairs to the query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Only objects with these labels, in the server's grammar: `app=web,tier!=cache`.
    pub label_selector: Option<String>,
    /// Only objects with these fields: `spec.nodeName=node-1`.
    pub field_selector: Option<String>,
    /// The version to list at or to watch from.
    pub resource_version: ResourceVersion,
    /// How a list understands the version.
    pub resource_version_match: Option<VersionMatch>,
    /// The most objects that one page may hold.
    pub limit: Option<u32>,
    /// Where the page before ended.
    pub continue_token: Option<String>,
    /// After how long the server ends a watch. Sent in whole seconds.
    pub timeout: Option<Duration>,
    /// Ask for bookmarks.
    pub allow_watch_bookmarks: bool,
    /// Ask a watch for the whole state first: a streaming list.
    pub send_initial_events: Option<bool>,
    /// Further pairs of the query, such as `shardSelector`.
    pub extra: Vec<(String, String)>,
}

/// How a list understands its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionMatch {
    /// At least as new as the version.
    NotOlderThan,
    /// Exactly that version.
    Exact,
}

impl ListOptions {
    /// The query of the request, percent-encoded.
    pub(crate) fn query(&self, watch: bool) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let mut pair = |name: &str, value: &str| {
            query.append_pair(name, value);
        };
        if watch {
            pair("watch", "true");
        }
        if let Some(selector) = self.label_selector.as_deref().filter(|selector| !selector.is_empty()) {
            pair("labelSelector", selector);
        }
        if let Some(selector) = self.field_selector.as_deref().filter(|selector| !selector.is_empty()) {
            pair("fieldSelector", selector);
        }
        if !self.resource_version.is_unset() {
            pair("resourceVersion", self.resource_version.as_str());
        }
        match self.resource_version_match {
            Some(VersionMatch::NotOlderThan) => pair("resourceVersionMatch", "NotOlderThan"),
            Some(VersionMatch::Exact) => pair("resourceVersionMatch", "Exact"),
            None => {}
        }
        if let Some(limit) = self.limit.filter(|limit| *limit > 0) {
            pair("limit", &limit.to_string());
        }
        if let Some(token) = &self.continue_token {
            pair("continue", token);
        }
        if let Some(timeout) = self.timeout {
            pair("timeoutSeconds", &timeout.as_secs().to_string());
        }
        if self.allow_watch_bookmarks {
            pair("allowWatchBookmarks", "true");
        }
        if let Some(send) = self.send_initial_events {
            pair("sendInitialEvents", if send { "true" } else { "false" });
        }
        for (name, value) in &self.extra {
            pair(name, value);
        }
        query.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_zero_is_sent_together_with_a_limit() {
        let options =
            ListOptions { resource_version: ResourceVersion::any(), limit: Some(500), ..ListOptions::default() };
        assert_eq!(options.query(false), "resourceVersion=0&limit=500");
    }

    #[test]
    fn selectors_and_extra_pairs_are_encoded() {
        let options = ListOptions {
            label_selector: Some("app in (a,b)".into()),
            field_selector: Some("spec.nodeName=n&1".into()),
            extra: vec![("shardSelector".into(), "x y".into())],
            ..ListOptions::default()
        };
        assert_eq!(
            options.query(true),
            "watch=true&labelSelector=app+in+%28a%2Cb%29&fieldSelector=spec.nodeName%3Dn%261&shardSelector=x+y"
        );
    }
}
