//! `/healthz`, `/livez`, `/readyz`: is the server well? It is, as long as it answers.

use http::StatusCode;

use super::answer::Answer;
use super::options::Options;
use crate::validation::quoted;

/// The checks that mean something here.
const CHECKS: [&str; 3] = ["ping", "log", "etcd"];

/// All checks of an endpoint, or one of them.
pub(super) fn answer(endpoint: &str, check: Option<&str>, options: &Options) -> Answer {
    let checks = CHECKS.iter().copied().chain((endpoint == "readyz").then_some("shutdown"));
    if let Some(check) = check {
        return match checks.into_iter().any(|known| known == check) {
            true => Answer::text(StatusCode::OK, "ok"),
            false => Answer::page_not_found(),
        };
    }
    if !options.verbose {
        return Answer::text(StatusCode::OK, "ok");
    }
    let mut text = String::new();
    for check in checks.clone() {
        let excluded = if options.exclude.iter().any(|excluded| excluded == check) { "excluded: " } else { "" };
        text.push_str(&format!("[+]{check} {excluded}ok\n"));
    }
    let unknown: Vec<String> = options
        .exclude
        .iter()
        .filter(|excluded| !checks.clone().any(|check| check == excluded.as_str()))
        .map(|excluded| quoted(excluded))
        .collect();
    if !unknown.is_empty() {
        text.push_str(&format!("warn: some health checks cannot be excluded: no matches for {}\n", unknown.join(",")));
    }
    text.push_str(&format!("{endpoint} check passed\n"));
    Answer::text(StatusCode::OK, text)
}
