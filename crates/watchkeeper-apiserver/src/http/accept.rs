//! Which representation a client wants.

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING};

use crate::failure::Failure;

/// How objects are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Representation {
    /// As they are.
    Whole,
    /// Only their metadata: `as=PartialObjectMetadata`, or `...List`.
    Metadata { list: bool },
    /// As rows: `as=Table`. `beta` is the older `v1beta1`, which differs in nothing but its name.
    Table { beta: bool },
}

/// One media type of an `Accept` header.
struct Clause<'a> {
    media_type: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

/// How groups and resources are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Discovery {
    /// A document for each group version.
    Apart,
    /// All in one: `as=APIGroupDiscoveryList`.
    Aggregated,
}

/// The first of the `Accept` header's media types that this server has, as a kube-apiserver chooses.
pub(crate) fn representation(headers: &HeaderMap) -> Result<Representation, Failure> {
    chosen(headers, Representation::Whole, |clause| clause.representation())
}

/// The same for the documents that say what there is.
pub(crate) fn discovery(headers: &HeaderMap) -> Result<Discovery, Failure> {
    chosen(headers, Discovery::Apart, |clause| clause.discovery())
}

/// The best clause that means something; `usual`, if nothing is said.
fn chosen<T>(headers: &HeaderMap, usual: T, meaning: impl Fn(&Clause<'_>) -> Option<T>) -> Result<T, Failure> {
    let accepted: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    if accepted.iter().all(|value| value.trim().is_empty()) {
        return Ok(usual);
    }
    let mut clauses: Vec<Clause<'_>> =
        accepted.iter().flat_map(|value| value.split(',')).map(Clause::of).filter(Clause::is_json).collect();
    if clauses.is_empty() {
        return Err(Failure::not_acceptable());
    }
    // The best first; of equally good ones those that say what they mean.
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality).then_with(|| a.is_any().cmp(&b.is_any())));
    clauses.iter().find_map(meaning).ok_or_else(Failure::unknown_representation)
}

/// Whether the client can read gzip.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

impl<'a> Clause<'a> {
    fn of(clause: &'a str) -> Self {
        let mut parts = clause.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let parameters: Vec<(&str, &str)> = parts
            .filter_map(|parameter| parameter.split_once('='))
            .map(|(name, value)| (name.trim(), value.trim()))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        let quality = parameters.iter().rev().find(|(name, _)| *name == "q");
        // What is no number is 0 to Go.
        let quality = quality.map_or(1.0, |(_, value)| value.parse().unwrap_or(0.0));
        Self { media_type, quality, parameters }
    }

    fn is_any(&self) -> bool {
        self.media_type == "*/*"
    }

    /// Unlike HTTP, a kube-apiserver knows media types in small letters only.
    fn is_json(&self) -> bool {
        self.is_any() || self.media_type == "application/json"
    }

    /// What objects are to be shown as: kind, group and version. None, if it asks for what no server has.
    fn target(&self) -> Option<(Option<&str>, Option<&str>, Option<&str>)> {
        let last = |name: &str| {
            let found = self.parameters.iter().rev().find(|(parameter, _)| *parameter == name);
            found.map(|(_, value)| *value)
        };
        let is_unknown = |name: &str, known: &str| last(name).is_some_and(|value| value != known);
        if is_unknown("stream", "watch") || is_unknown("sv", "v1") {
            return None;
        }
        Some((last("as"), last("g"), last("v")))
    }

    /// The form of discovery that it means, if the server has it. The beta of the aggregated one is no more.
    fn discovery(&self) -> Option<Discovery> {
        match self.target()? {
            (None, None, None) => Some(Discovery::Apart),
            (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2")) => Some(Discovery::Aggregated),
            _ => None,
        }
    }

    /// The representation that it means, if the server has it.
    fn representation(&self) -> Option<Representation> {
        match self.target()? {
            (None, None, None) => Some(Representation::Whole),
            (Some("PartialObjectMetadata"), Some("meta.k8s.io"), Some("v1")) => {
                Some(Representation::Metadata { list: false })
            }
            (Some("PartialObjectMetadataList"), Some("meta.k8s.io"), Some("v1")) => {
                Some(Representation::Metadata { list: true })
            }
            (Some("Table"), Some("meta.k8s.io"), Some(version @ ("v1" | "v1beta1"))) => {
                Some(Representation::Table { beta: version == "v1beta1" })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_first_clause_that_the_server_has_is_chosen() {
        const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let chosen = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_str(accept).expect("a header"));
            representation(&headers)
        };
        let (whole, table) = (Ok(Representation::Whole), Ok(Representation::Table { beta: false }));
        assert_eq!(chosen(TABLE), table);
        assert_eq!(chosen(&format!("{TABLE},application/json")), table);
        assert_eq!(chosen("*/*;as=Table;v=v1;g=meta.k8s.io"), table);
        assert_eq!(chosen(&format!("application/json;q=0.1,{TABLE};q=0.5")), table);
        assert_eq!(chosen(&format!("{TABLE};q=0.5,application/json")), whole);
        assert_eq!(chosen(&format!("{};q=x", TABLE)), table);
        assert_eq!(chosen("application/json;as=Table;v=v2;g=meta.k8s.io, application/json"), whole);
        let beta = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
        assert_eq!(chosen(&format!("{},{beta}", TABLE.replace("v1", "v2"))), Ok(Representation::Table { beta: true }));
        assert_eq!(chosen("application/json;as="), whole);
        for refused in [
            "application/json;as=Table;v=v1",
            "application/json;v=v1",
            "application/json;as=Foo;v=v1;g=meta.k8s.io",
            "application/json;as=Table;v=v1;g=meta.k8s.io;stream=foo",
            "application/json;sv=v2",
            "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
            "application/*",
            "Application/JSON",
            "text/html",
        ] {
            assert_eq!(chosen(refused).expect_err(refused).code(), 406);
        }
    }

    #[test]
    fn aggregated_discovery_is_only_for_those_who_ask_for_it() {
        const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let beta = V2.replace("v2", "v2beta1");
        let chosen = |accept: &str| {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_str(accept).expect("a header"))]);
            discovery(&headers).map_err(|failure| failure.code())
        };
        assert_eq!(discovery(&HeaderMap::new()), Ok(Discovery::Apart));
        for accept in [V2.to_owned(), format!("{beta},{V2},application/json"), format!("{V2};profile=nopeer")] {
            assert_eq!(chosen(&accept), Ok(Discovery::Aggregated), "{accept}");
        }
        for accept in [format!("{beta},application/json"), "application/json, */*".to_owned()] {
            assert_eq!(chosen(&accept), Ok(Discovery::Apart), "{accept}");
        }
        assert_eq!(chosen(&beta), Err(406));
    }
}
