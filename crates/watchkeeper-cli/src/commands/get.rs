//! `watchkeeper get`: what there is, from a synced copy.

use std::time::Duration;

use clap::Args;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use watchkeeper::Index;

use super::apart::apart;
use super::feed::{Feed, FeedOptions, Source, SyncProgress};
use super::show::ShowOptions;
use super::watch;
use crate::cluster::{AccessOptions, ScopeOptions, Target, kinds};
use crate::failure::{Exit, Failure, Outcome};
use crate::interrupt;
use crate::output::{Group, PrintError, Printer};
use crate::terminal::{Color, Output, escape_text, tell};

const EXAMPLES: &str = "\
Examples:
  watchkeeper get pods -A
  watchkeeper get pods -A --index .spec.nodeName=node-1    the pods of a node
  watchkeeper get deploy,svc -n shop -o yaml
  watchkeeper get pods -A -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName
  watchkeeper get nodes --demo                             with no cluster at all";

/// Options of `watchkeeper get`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// KIND[,KIND...] [NAME...], or KIND/NAME...; kinds as in kubectl: pods, po, deployments.apps, all
    #[arg(required = true, value_name = "KIND")]
    words: Vec<String>,

    #[command(flatten)]
    scope: ScopeOptions,

    /// Objects whose field has this value, found by an index: .spec.nodeName=node-1, or /spec/nodeName=node-1
    #[arg(long, value_name = "FIELD=VALUE", help_heading = "Which objects")]
    index: Option<String>,

    #[command(flatten)]
    show: ShowOptions,

    /// Go on with every change: the same as `watchkeeper watch`
    #[arg(short, long, conflicts_with_all = ["index", "exit_empty", "timeout"])]
    watch: bool,

    /// Exit code 3 if there is nothing
    #[arg(long)]
    exit_empty: bool,

    /// How long the copy may take
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = crate::time::duration)]
    timeout: Duration,

    #[command(flatten)]
    access: AccessOptions,
}

/// Prints what there is.
pub(crate) async fn run(options: Options, color: Color) -> Outcome {
    if options.watch {
        return watch::run(watch::Options::of_get(options.words, options.scope, options.show, options.access), color)
            .await;
    }
    if options.show.output.is_for_watch_only() {
        return Err(Failure::usage("`get` shows one state, and -o diff what changes")
            .try_this("watchkeeper watch KIND -o diff"));
    }
    let interrupted = interrupt::token();
    tokio::select! {
        outcome = print(&options, color) => outcome,
        () = interrupted.cancelled() => Ok(Exit::Interrupted),
    }
}

async fn print(options: &Options, color: Color) -> Outcome {
    let index = options.index.as_deref().map(parse_index).transpose()?;
    // The copy has to be there by then; whoever reads it may take his time.
    let deadline = Instant::now() + options.timeout.min(Duration::from_secs(86_400 * 365));
    let (access, words) = (options.access.clone(), options.words.clone());
    let connecting = apart(|| async move {
        let access = access.connect().await?;
        let targets = kinds::targets(&access, &words).await?;
        Ok((access, targets))
    });
    let connected = timeout_at(deadline, connecting).await;
    let (access, targets) = connected.unwrap_or_else(|_| Err(too_late(options, None)))?;
    let several_kinds = targets.iter().any(|target| target.resource != targets[0].resource);
    let several_namespaces = options.scope.names(&access).is_none_or(|names| names.len() > 1);
    let print = options.show.print_options(color, several_kinds, several_namespaces)?;
    let feed_options = FeedOptions {
        scope: &options.scope,
        format: &options.show.output,
        looks_into_bodies: index.is_some() || options.show.sort_by.is_some(),
        page_size: None,
    };
    let (feed, _messages, _sender) = Feed::new(&access, &feed_options, targets)?;
    let token = CancellationToken::new();
    let _stop = token.clone().drop_guard();
    for source in &feed.sources {
        if let Some((field, _)) = &index {
            let by_field = Index::field(&source.pointer(field));
            source.informer.add_index(FIELD, by_field).await.map_err(index_failure)?;
        }
        source.informer.start(token.clone())?;
    }

    let listing = async {
        let mut groups = Vec::new();
        for source in &feed.sources {
            let lister = match source.synced().await {
                Ok(lister) => lister,
                // One kind that may not be seen does not hide the others.
                Err(error) => {
                    groups.push(Err(Failure::from(error)));
                    continue;
                }
            };
            let objects = match &index {
                Some((_, value)) => lister.by_index(FIELD, value).map_err(index_failure)?,
                None => lister.list(),
            };
            groups.push(Ok(Group { columns: source.columns(), changes: source.listing(&objects) }));
        }
        Ok::<_, Failure>(groups)
    };
    let listed: Vec<Result<Group, Failure>> =
        match SyncProgress::new().during(&feed, timeout_at(deadline, listing)).await {
            Ok(listed) => listed?,
            Err(_) => {
                let late = feed.sources.iter().map(|source| source.informer.status()).find(|status| !status.synced);
                return Err(too_late(options, late.and_then(|status| status.last_error).map(|(error, _)| error)));
            }
        };

    let is_missing = |(source, group): &(&Source, &Result<Group, Failure>)| {
        source.target.name.is_some() && group.as_ref().is_ok_and(|group| group.changes.is_empty())
    };
    let missing = feed.sources.iter().zip(&listed).find(is_missing).map(|(source, _)| source.target.clone());
    let (mut groups, mut refused): (Vec<Group>, Vec<Failure>) = (Vec::new(), Vec::new());
    let mut resource = None;
    for (source, group) in feed.sources.iter().zip(listed) {
        match (group, groups.last_mut()) {
            // Several objects of a kind are one table.
            (Ok(group), Some(last)) if resource == Some(&source.target.resource) => last.changes.extend(group.changes),
            (Ok(group), _) => {
                groups.push(group);
                resource = Some(&source.target.resource);
            }
            (Err(failure), _) => refused.push(failure),
        }
    }
    let last_refused = refused.pop();
    refused.iter().for_each(tell);
    let last_refused = match last_refused {
        Some(failure) if groups.is_empty() => return Err(failure),
        other => other,
    };
    let single = feed.sources.len() == 1 && feed.sources[0].target.name.is_some();
    let found = groups.iter().any(|group| !group.changes.is_empty());
    let printed =
        apart(move || async move { Ok(Printer::new(print).list(&mut Output::stdout(), groups, single)) }).await?;
    for source in &feed.sources {
        source.informer.shutdown().await;
    }
    let place = options.scope.describe(&access);
    access.close().await;
    match printed {
        Err(PrintError::ReaderGone) => return Ok(Exit::Ok),
        printed => printed?,
    };
    if let Some(failure) = last_refused {
        return Err(failure);
    }
    if let Some(Target { resource, name }) = missing {
        let name = name.unwrap_or_default();
        let place = if resource.namespaced { place.as_str() } else { "" };
        return Err(Failure::new(Exit::NotFound, format!("there is no {} {name:?}{place}", resource.full_name()))
            .try_this("look in all namespaces: -A"));
    }
    if !found {
        tell(format_args!("No objects found{}.", escape_text(&place)));
        return Ok(if options.exit_empty { Exit::NotFound } else { Exit::Ok });
    }
    Ok(Exit::Ok)
}

fn too_late(options: &Options, why: Option<watchkeeper::Error>) -> Failure {
    let failure = Failure::new(Exit::Timeout, format!("there is no whole copy after {:?}", options.timeout))
        .try_this("wait longer: --timeout 10m; ask for less: -n, -l; or see what is slow: watchkeeper doctor");
    match why {
        Some(why) => failure.because(why),
        None => failure,
    }
}

/// The name of the index that `--index` asks for.
const FIELD: &str = "field";

/// A field, as a JSON pointer, and its value.
fn parse_index(text: &str) -> Outcome<(String, String)> {
    let wrong = || {
        Failure::usage(format!("{text:?} is no FIELD=VALUE")).try_this(
            "for example: --index .spec.nodeName=node-1 or --index '/metadata/labels/app.kubernetes.io~1name=web'",
        )
    };
    let (field, value) = text.split_once('=').ok_or_else(wrong)?;
    let pointer = match field.strip_prefix('/') {
        Some(_) => field.to_owned(),
        None => format!("/{}", field.strip_prefix('.').unwrap_or(field).replace('.', "/")),
    };
    if pointer.len() < 2 || pointer.contains("//") { Err(wrong()) } else { Ok((pointer, value.to_owned())) }
}

fn index_failure(error: watchkeeper::IndexError) -> Failure {
    Failure::new(Exit::Error, "the index cannot be used").because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_a_path_or_a_pointer() {
        for (text, pointer, value) in [
            (".spec.nodeName=node-1", "/spec/nodeName", "node-1"),
            ("spec.nodeName=", "/spec/nodeName", ""),
            ("/metadata/labels/a.b~1c=d=e", "/metadata/labels/a.b~1c", "d=e"),
        ] {
            assert_eq!(parse_index(text).ok(), Some((pointer.to_owned(), value.to_owned())), "{text}");
        }
        for text in ["", "spec", "=x", ".=x", "/=x", "spec..a=b"] {
            assert!(parse_index(text).is_err(), "{text}");
        }
    }
}
