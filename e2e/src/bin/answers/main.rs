//! Same request, same answer: scripts of requests to a real kube-apiserver and to ours, and what both answer.
//!
//! `scripts/*.txt` has the requests; [`story`] says how they are written. What differs is shown, and is a failure unless
//! `differences.txt` knows it; what is known there and does not differ is one too.
//!
//! ```text
//! cargo run -p watchkeeper-e2e --bin answers               all stories
//! cargo run -p watchkeeper-e2e --bin answers 'lists/*'     some
//! ```

mod diff;
mod known;
mod normal;
mod run;
mod story;
mod wire;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use futures::StreamExt as _;
use watchkeeper_apiserver::{AccessRules, ApiServer, Controllers, ListenOptions, Listening};
use watchkeeper_e2e::{Arguments, Cluster, Failure, Programs, Report, Settings, User, unless_interrupted};

use crate::known::{Known, fingerprint};
use crate::story::{Step, Story};
use crate::wire::Server;

/// Stories at once. More would not be faster on two cores, and most of a story's time is waiting.
const AT_ONCE: usize = 8;
/// How the real server is set up: without the plugins whose work controllers would undo, of which there are none here, and with
/// the features of the release that ours is like.
const FLAGS: [&str; 2] = [
    "--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection,TaintNodesByCondition",
    "--emulated-version=1.36",
];

#[tokio::main]
async fn main() -> ExitCode {
    unless_interrupted(suite()).await
}

async fn suite() -> ExitCode {
    let arguments = Arguments::read();
    let report = Report::new("answers", &["requests", "differences"]);
    let programs = match Programs::find_servers() {
        Ok(programs) => programs,
        Err(not_here) => return report.skip(&not_here),
    };
    match compare(&programs, &arguments, report).await {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("answers: {failure:#}");
            ExitCode::FAILURE
        }
    }
}

/// What came of one story: its steps that differ, and how.
struct Compared<'a> {
    story: &'a Story,
    result: Result<Vec<(String, String)>, Failure>,
}

async fn compare(programs: &Programs, arguments: &Arguments, mut report: Report) -> Result<ExitCode, Failure> {
    let mut stories = stories()?;
    let is_whole = arguments.cases.is_empty();
    stories.retain(|story| arguments.wants(&story.name));
    let known = Known::parse(include_str!("differences.txt")).context("differences.txt")?;
    let cluster =
        Cluster::start(programs, Settings { apiserver: FLAGS.map(str::to_owned).to_vec(), ..Settings::default() })
            .await?;
    let (listening, config) = ours().await?;
    let (theirs, ours) = (Server::new(cluster.config(User::Admin))?, Server::new(config)?);

    let mut compared: Vec<Compared<'_>> = futures::stream::iter(&stories)
        .map(|story| async { Compared { story, result: told_twice(story, &theirs, &ours).await } })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    compared.sort_by(|a, b| a.story.name.cmp(&b.story.name));
    listening.shutdown().await;
    cluster.stop().await?;

    let (mut requests, mut differences, mut allowed) = (0, 0, 0);
    let mut differing = Vec::new();
    for Compared { story, result } in compared {
        let count = story.requests();
        requests += count;
        let (found, outcome) = match result {
            Err(failure) => (0, Err(format!("{failure:#}"))),
            Ok(found) => {
                let (listed, new): (Vec<_>, Vec<_>) = found.into_iter().partition(|(id, text)| known.has(id, text));
                let number = listed.len() + new.len();
                differences += number;
                allowed += listed.len();
                let texts: Vec<String> =
                    new.iter().map(|(id, text)| format!("{} {id}\n{text}", fingerprint(text))).collect();
                differing.extend(listed.into_iter().map(|(id, _)| id));
                let outcome = if texts.is_empty() { Ok(()) } else { Err(texts.join("\n")) };
                (number, outcome)
            }
        };
        report.row(&story.name, &[count.to_string(), found.to_string()], outcome);
    }
    if is_whole {
        let same: Vec<&str> = known.steps().filter(|step| !differing.iter().any(|id| id == step)).collect();
        if !same.is_empty() {
            let text = format!("remove from differences.txt what differs no more:\n{}", same.join("\n"));
            report.row("differences.txt", &[], Err(text));
        }
    }
    for (reason, count) in known.reasons() {
        report.note(format!("allowed: {reason} ({count})"));
    }
    report.note(format!(
        "{requests} requests, {differences} differences (allowed {allowed}), kube-apiserver {}",
        programs.version
    ));
    Ok(report.finish())
}

/// Our server as the real one is: it collects no garbage, and knows users who may do nothing.
async fn ours() -> Result<(Listening, kube::Config), Failure> {
    let rules: AccessRules = serde_json::from_value(serde_json::json!({"users": []}))?;
    let server = ApiServer::builder().controllers(Controllers::Elsewhere).rules(rules).build();
    let listening = server.listen(ListenOptions::default()).await?;
    let mut config = kube::Config::new(listening.url().parse()?);
    config.auth_info.token = Some(listening.token().to_owned().into());
    Ok((listening, config))
}

/// The steps of a story whose answers differ.
async fn told_twice(story: &Story, theirs: &Server, ours: &Server) -> Result<Vec<(String, String)>, Failure> {
    let (theirs, ours) = tokio::join!(run::told(story, theirs), run::told(story, ours));
    let (theirs, ours) = (theirs.context("kube-apiserver")?, ours.context("watchkeeper")?);
    let compared = story.steps.iter().filter_map(|step| match step {
        Step::Ask(ask) if ask.until.is_none() => Some(&ask.id),
        _ => None,
    });
    let pairs = compared.zip(theirs.iter().zip(&ours));
    let differing = pairs.filter(|(_, (theirs, ours))| theirs != ours);
    Ok(differing.map(|(id, (theirs, ours))| (id.clone(), diff::unified(theirs, ours))).collect())
}

/// All stories, by file.
fn stories() -> Result<Vec<Story>, Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin/answers/scripts");
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).context("the scripts")? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).context("a name")?.to_owned();
        files.insert(name, std::fs::read_to_string(&path)?);
    }
    let mut stories = Vec::new();
    for (name, text) in &files {
        stories.extend(story::parse(name, text)?);
    }
    Ok(stories)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_stories_can_be_read_and_there_are_enough() {
        let stories = stories().expect("stories");
        let requests: usize = stories.iter().map(Story::requests).sum();
        assert!(requests >= 400, "{requests}");
        let mut namespaces: Vec<String> = stories.iter().map(Story::namespace).collect();
        namespaces.sort();
        namespaces.dedup();
        assert_eq!(namespaces.len(), stories.len(), "two stories share a namespace");
    }

    #[test]
    fn every_known_difference_is_one_of_a_step() {
        let stories = stories().expect("stories");
        let steps = stories.iter().flat_map(|story| &story.steps);
        let ids: Vec<&str> =
            steps.filter_map(|step| if let Step::Ask(ask) = step { Some(ask.id.as_str()) } else { None }).collect();
        let known = Known::parse(include_str!("differences.txt")).expect("differences");
        for step in known.steps() {
            assert!(ids.contains(&step), "there is no step {step}");
        }
    }
}
