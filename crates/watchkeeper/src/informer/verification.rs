//! What a comparison with the server found.

use std::fmt;
use std::sync::Arc;

use crate::{ObjectKey, ResourceVersion};

/// What [`verify_against_server`](crate::SharedInformer::verify_against_server) found.
///
/// Its text is for people, and has keys and versions only: `28 objects compared: 1 missing`, and a line for each difference.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Verification {
    /// How many objects the server has, all of which were compared.
    pub objects: u64,
    /// Which state of the server that was, for each namespace; if all are watched at once, under no name.
    pub versions: Vec<(Option<Arc<str>>, ResourceVersion)>,
    /// What differs, by namespace and key: the first hundred.
    pub differences: Vec<Difference>,
    /// How many objects differ in all.
    pub difference_count: u64,
}

/// An object that the cache does not have as the server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// Namespace and name.
    pub key: ObjectKey,
    /// In which way.
    pub found: Found,
    /// Why its newest state could not be used, if that is the reason: what was known of it before stands.
    pub unusable: Option<&'static str>,
}

/// In which way an object differs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// The cache lacks it.
    Missing {
        /// The version that the server has.
        server: ResourceVersion,
    },
    /// Only the cache has it.
    Extra {
        /// The version that the cache has.
        cached: ResourceVersion,
    },
    /// Both have it, in different states. If the versions are equal, the bodies or the uids are not.
    Different {
        /// The version that the cache has.
        cached: ResourceVersion,
        /// The version that the server has.
        server: ResourceVersion,
    },
}

impl Verification {
    /// The cache has what the server has, and nothing else.
    pub fn is_same(&self) -> bool {
        self.difference_count == 0
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { objects, versions, differences, difference_count } = self;
        write!(f, "{objects} objects compared")?;
        if let [(None, version)] = versions.as_slice() {
            write!(f, " at version {version}")?;
        }
        if self.is_same() {
            return f.write_str(": all are the same");
        }
        write!(f, ": {difference_count} differ")?;
        for difference in differences {
            write!(f, "\n  {difference}")?;
        }
        let more = difference_count.saturating_sub(differences.len() as u64);
        if more > 0 { write!(f, "\n  and {more} more") } else { Ok(()) }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, found, unusable } = self;
        match found {
            Found::Missing { server } => write!(f, "{key} is missing, and is at version {server}")?,
            Found::Extra { cached } => write!(f, "{key} is gone, and was at version {cached}")?,
            Found::Different { cached, server } if cached == server => {
                write!(f, "{key} is another one, also at version {server}")?;
            }
            Found::Different { cached, server } => write!(f, "{key} is at version {server}, and cached at {cached}")?,
        }
        match unusable {
            Some(problem) => write!(f, " (its newest state cannot be used: {problem})"),
            None => Ok(()),
        }
    }
}
