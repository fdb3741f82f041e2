//! Which version, what time is it there, who am I, and is it well?

use std::io;
use std::time::SystemTime;

use http::header::DATE;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::ask::{self, Answer};
use super::report::{Check, Report};
use crate::cluster::Access;
use crate::terminal::seconds;

/// Streaming lists and all else that is used here came by then.
const OLDEST_MINOR: u32 = 30;
/// Tokens and certificates begin to fail when clocks are further apart.
const SKEW_SECONDS: i64 = 30;

/// Who the server thinks that we are.
pub(super) struct User {
    /// As rights name it; the server may not tell.
    pub(super) name: Option<String>,
}

/// The version, which everybody may ask for, and the time of the answer. Whether it is a Kubernetes API at all.
pub(super) async fn version_and_clock(access: &Access, report: &mut Report) -> io::Result<bool> {
    let asked = SystemTime::now();
    let answer = match ask::get(access, "/version").await {
        Ok(answer) => answer,
        Err(why) => {
            report.add(Check::failed("server", format!("it does not answer: {why}")).with_remedy(REACH))?;
            report.add(Check::skipped("clock", "the server does not answer"))?;
            return Ok(false);
        }
    };
    let is_kubernetes = match answer.json() {
        Ok(version) => {
            report.add(version_check(&version, &answer))?;
            true
        }
        // Some servers tell nothing to strangers: who is no stranger is found out next.
        Err(why) if matches!(answer.status, 401 | 403) && !answer.is_html() => {
            report.add(Check::skipped("server", format!("its version is not told: {why}")))?;
            true
        }
        Err(why) => {
            report.add(Check::failed("server", format!("/version: {why}")).with_remedy(NOT_KUBERNETES))?;
            false
        }
    };
    report.add(clock(access, &answer, asked))?;
    Ok(is_kubernetes)
}

const REACH: &str = "is the server overloaded or stuck? Wait longer: --request-timeout 2m";
const NOT_KUBERNETES: &str =
    "see whether the server's URL in the kubeconfig is that of a Kubernetes API, with its path";

fn version_check(version: &Value, answer: &Answer) -> Check {
    let text = |name: &str| version.get(name).and_then(Value::as_str).unwrap_or_default();
    let full = text("gitVersion");
    if full.is_empty() {
        return Check::failed("server", "/version tells no gitVersion").with_remedy(NOT_KUBERNETES);
    }
    let found = format!("Kubernetes {full}, answers in {}", seconds(answer.took));
    let minor: String = text("minor").chars().take_while(char::is_ascii_digit).collect();
    let is_old = text("major") == "1" && minor.parse::<u32>().is_ok_and(|minor| minor < OLDEST_MINOR);
    if is_old {
        let remedy =
            format!("upgrade it to 1.{OLDEST_MINOR} or later; until then lists are paged, and take more memory");
        return Check::warning("server", found).with_remedy(remedy);
    }
    Check::ok("server", found)
}

fn clock(access: &Access, answer: &Answer, asked: SystemTime) -> Check {
    if access.demo_server().is_some() {
        return Check::skipped("clock", "the server is in this process");
    }
    let date = answer.headers.get(DATE).and_then(|date| date.to_str().ok());
    let there = date.and_then(|date| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date).ok());
    let here = Timestamp::try_from(asked + answer.took / 2).ok();
    let (Some(there), Some(here)) = (there, here) else {
        return Check::skipped("clock", "the server does not tell its time");
    };
    let apart = there.as_second() - here.as_second();
    let found = match apart {
        -1..=1 => "the server's clock and this machine's are the same, to the second".to_owned(),
        apart if apart > 0 => format!("the server's clock is {apart} s ahead of this machine's"),
        apart => format!("the server's clock is {} s behind this machine's", -apart),
    };
    match apart.abs() {
        0..=SKEW_SECONDS => Check::ok("clock", found),
        _ => {
            Check::warning("clock", found).with_remedy("set the clocks by NTP: tokens and certificates fail otherwise")
        }
    }
}

/// Who am I? None, if the server does not know.
pub(super) async fn credentials(access: &Access, report: &mut Report) -> io::Result<Option<User>> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = ask::review(access, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await;
    let answer = match answer {
        // A server without reviews, or one where they need rights: something else that strangers may not do tells too.
        Ok(answer) if answer.is_not_served() || answer.status == 403 => ask::get(access, "/api/v1").await,
        answer => answer,
    };
    let (check, user) = match answer {
        Err(why) => (Check::failed("credentials", why).with_remedy(REACH), None),
        Ok(answer) if answer.status == 401 => (
            Check::failed("credentials", format!("the server does not know who asks ({})", answer.refusal()))
                .refused()
                .with_remedy(WHO),
            None,
        ),
        Ok(answer) => match answer.json() {
            Ok(document) => known(&document),
            Err(why) => {
                let check = Check::failed("credentials", why);
                (if answer.status == 403 { check.refused().with_remedy(WHO) } else { check.with_remedy(REACH) }, None)
            }
        },
    };
    report.add(check)?;
    Ok(user)
}

const WHO: &str = "the token or certificate of this user has ended, is another cluster's, or is missing: log in again, \
                   or get a new kubeconfig";

fn known(document: &Value) -> (Check, Option<User>) {
    let user = document.pointer("/status/userInfo");
    let name = user.and_then(|user| user.get("username")).and_then(Value::as_str).filter(|name| !name.is_empty());
    let Some(name) = name else {
        let check = Check::ok("credentials", "the server accepts them; it does not say for whom it takes you");
        return (check, Some(User { name: None }));
    };
    if name == "system:anonymous" {
        let check = Check::failed("credentials", "the server takes you for anonymous: it saw no credentials");
        return (check.refused().with_remedy(WHO), None);
    }
    let groups: Vec<&str> = user
        .and_then(|user| user.get("groups"))
        .and_then(Value::as_array)
        .map(|groups| groups.iter().filter_map(Value::as_str).take(10).collect())
        .unwrap_or_default();
    let groups = if groups.is_empty() { String::new() } else { format!(", in {}", groups.join(", ")) };
    (Check::ok("credentials", format!("you are {name}{groups}")), Some(User { name: Some(name.to_owned()) }))
}

/// Is it well?
pub(super) async fn health(access: &Access, report: &mut Report) -> io::Result<()> {
    let check = match ask::get_as(access, "/readyz?verbose", "text/plain, */*").await {
        Err(why) => Check::failed("health", why).with_remedy(REACH),
        Ok(answer) => match answer.status {
            200..=299 if answer.is_html() => Check::failed("health", answer.refusal()).with_remedy(NOT_KUBERNETES),
            200..=299 => Check::ok("health", format!("the server is ready, and says so in {}", seconds(answer.took))),
            401 | 403 | 404 => Check::skipped("health", format!("/readyz is not told: {}", answer.status)),
            _ => {
                let text = String::from_utf8_lossy(&answer.body).into_owned();
                let bad: Vec<&str> = text.lines().filter(|line| line.starts_with("[-]")).take(5).collect();
                let why = if bad.is_empty() { answer.refusal() } else { bad.join("; ") };
                Check::failed("health", format!("the server is not ready: {why}"))
                    .with_remedy("wait until it has started, or look at the control plane's own logs")
            }
        },
    };
    report.add(check)
}
