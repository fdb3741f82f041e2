//! What do the drivers share? All but the library that they drive.
//!
//! | file | answers |
//! |---|---|
//! | `arguments` | what a driver is asked to do |
//! | `library` | what a library has to offer to be driven |
//! | `phases` | what is done, one phase after the other |
//! | `reads` | what reading a cache costs |
//! | `heard` | what a handler has heard |
//! | `control` | how the load server is told what to do |
//! | `digest` | whether two caches hold the same |
//! | `usage` | what this process has used |
//! | `figures` | what is said in the end |

pub(crate) mod arguments;
pub(crate) mod control;
pub(crate) mod digest;
pub(crate) mod figures;
pub(crate) mod heard;
pub(crate) mod library;
pub(crate) mod phases;
pub(crate) mod reads;
pub(crate) mod usage;

use std::process::ExitCode;

use serde::Serialize;

/// Anything that goes wrong ends a driver, with words for people.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
/// Something, or why there is none.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Says what was measured, as the one line on stdout, or what went wrong.
pub(crate) fn finish(measured: Outcome<impl Serialize>) -> ExitCode {
    match measured.and_then(|figures| Ok(serde_json::to_string(&figures)?)) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// The version of a package that this was built with.
pub(crate) fn version_of(package: &str) -> &'static str {
    let lock = include_str!("../../../../Cargo.lock");
    let of_package = lock.split("[[package]]").find(|entry| entry.contains(&format!("\nname = \"{package}\"\n")));
    let version =
        of_package.and_then(|entry| entry.split_once("\nversion = \"")).and_then(|(_, rest)| rest.split_once('"'));
    version.map_or("unknown", |(version, _)| version)
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_are_those_of_the_lock_file() {
        assert_eq!(super::version_of("watchkeeper-bench"), env!("CARGO_PKG_VERSION"));
        assert_eq!(super::version_of("no-such-package"), "unknown");
    }
}
