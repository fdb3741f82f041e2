//! What a name, a label key and a label value may look like, with the texts that Kubernetes refuses others with.
//!
//! Counterpart: `k8s.io/apimachinery/pkg/api/validate/content`.

const LABEL_LIMIT: usize = 63;
const DNS_LABEL_LIMIT: usize = 63;
const SUBDOMAIN_LIMIT: usize = 253;

const NAME_PART: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const DNS_1035_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
     alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
     validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
     '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
     used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
     '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
     must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// What is wrong with a label's key; nothing, if the list is empty.
pub(crate) fn label_key(key: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let mut parts = key.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            }
            if prefix.len() > SUBDOMAIN_LIMIT {
                errors.push(format!("prefix part {}", too_long(SUBDOMAIN_LIMIT)));
            }
            if !prefix.is_empty() && !is_subdomain(prefix) {
                errors.push(format!("prefix part {SUBDOMAIN}"));
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {NAME_PART} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LIMIT {
        errors.push(format!("name part {}", too_long(LABEL_LIMIT)));
    }
    if !is_qualified(name) {
        errors.push(format!("name part {NAME_PART}"));
    }
    errors
}

/// What is wrong with a label's value.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > LABEL_LIMIT {
        errors.push(too_long(LABEL_LIMIT));
    }
    if !value.is_empty() && !is_qualified(value) {
        errors.push(LABEL_VALUE.to_owned());
    }
    errors
}

/// What is wrong with a name that must be a DNS subdomain.
pub(crate) fn subdomain(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if name.len() > SUBDOMAIN_LIMIT {
        errors.push(too_many_characters(SUBDOMAIN_LIMIT));
    }
    if !is_subdomain(name) {
        errors.push(SUBDOMAIN.to_owned());
    }
    errors
}

/// What is wrong with a name that must be a DNS label: that of a namespace.
pub(crate) fn dns_label(name: &str) -> Vec<String> {
    if name.contains('.') {
        return vec!["must not contain dots".to_owned()];
    }
    let mut errors = Vec::new();
    if name.len() > DNS_LABEL_LIMIT {
        errors.push(too_many_characters(DNS_LABEL_LIMIT));
    }
    if !is_dns_label(name) {
        errors.push(DNS_LABEL.to_owned());
    }
    errors
}

/// What is wrong with a name that must be a DNS label that begins with a letter: that of a version, or of a resource.
pub(crate) fn dns_1035_label(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if name.len() > DNS_LABEL_LIMIT {
        errors.push(too_many_characters(DNS_LABEL_LIMIT));
    }
    if !is_dns_label(name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        errors.push(DNS_1035_LABEL.to_owned());
    }
    errors
}

/// What is wrong with a name that must only fit into a path.
pub(crate) fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ['/', '%'].iter().filter(|c| name.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

/// A text as Go's `%q` shows it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if (c as u32) < 0x20 || c == '\u{7f}' => quoted.push_str(&format!("\\x{:02x}", c as u32)),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

/// The same rule in the words of an older part of Kubernetes, which names still go through.
fn too_many_characters(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

/// `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`
fn is_qualified(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inner)
}

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let edge = |b: Option<&u8>| b.is_some_and(plain);
    edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(|b| plain(b) || *b == b'-')
}
