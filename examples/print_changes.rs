//! Prints every change of a kind of the current kubeconfig's cluster, and every reconnect.
//!
//! ```text
//! cargo run --example print_changes -- pods
//! cargo run --example print_changes -- deployments.apps -n shop -l app=web
//! ```

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context as _, bail};
use kube_client::Config;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use watchkeeper::{
    Error, ListWatch, Object, ObjectKey, Phase, Reflector, ReflectorStore, Replacement, Scope, StatusReader,
};

const HELP: &str = "\
Prints every change of a kind, and every reconnect, until Ctrl-C.

Usage: print_changes PLURAL[.GROUP][/VERSION] [options]

  pods                          the core group, version v1
  deployments.apps              group apps, version v1
  leases.coordination.k8s.io/v1
  -n, --namespace NAME          only objects of this namespace (default: all namespaces)
  -l, --selector SELECTOR       only objects with these labels
      --field-selector SELECTOR only objects with these fields
      --metadata                metadata alone
      --http2                   HTTP/2 in place of HTTP/1.1
      --pages                   list in pages, not as a stream
  -h, --help                    this text

The cluster comes from KUBECONFIG, ~/.kube/config or the pod's service account. RUST_LOG=watchkeeper=debug tells more.";

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> anyhow::Result<()> {
    let Some(arguments) = Arguments::parse(std::env::args().skip(1))? else {
        println!("{HELP}");
        return Ok(());
    };
    let config = Config::infer().await.context("there is no cluster to talk to; set KUBECONFIG")?;
    let mut options = watchkeeper::ClientOptions::default();
    options.http2 = arguments.http2;
    let client = watchkeeper::client_with(config, options)?;

    let mut source = ListWatch::by_name(client, &arguments.group, &arguments.version, &arguments.plural);
    source = source.scope(arguments.namespace.map_or(Scope::All, Scope::Namespace));
    if let Some(selector) = arguments.labels {
        source = source.labels(selector);
    }
    if let Some(selector) = arguments.fields {
        source = source.fields(selector);
    }
    if arguments.metadata {
        source = source.metadata_only();
    }

    let reflector = Reflector::new(source, Printer::default()).streaming_lists(!arguments.pages);
    let status = reflector.status();
    let token = CancellationToken::new();
    let running = tokio::spawn(reflector.run(token.clone()));
    let reporting = tokio::spawn(report(status.clone()));
    tokio::signal::ctrl_c().await.context("Ctrl-C cannot be caught")?;
    token.cancel();
    running.await.context("the reflector stopped by itself")?;
    reporting.abort();

    let status = status.get();
    eprintln!(
        "{} events, {} reconnects, {} lists again, last version {}",
        status.events,
        status.watch_restarts.values().sum::<u64>(),
        status.relists.values().sum::<u64>(),
        status.resource_version
    );
    Ok(())
}

/// Prints what it is told.
#[derive(Default)]
struct Printer(Mutex<std::collections::BTreeMap<ObjectKey, Object>>);

impl Printer {
    fn print(&self, change: &str, key: &ObjectKey, version: &str) {
        let time = jiff::Zoned::now().strftime("%H:%M:%S%.3f");
        // A closed pipe is no reason to stop with a panic.
        let _ = writeln!(std::io::stdout(), "{time} {change:<8} {} {version}", key.to_string().escape_debug());
    }

    fn put(&self, change: &str, object: Object) {
        self.print(change, object.key(), object.resource_version().as_str());
        self.objects().insert(object.key().clone(), object);
    }

    fn objects(&self) -> std::sync::MutexGuard<'_, std::collections::BTreeMap<ObjectKey, Object>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl ReflectorStore for Printer {
    fn add(&self, object: Object) -> Result<(), Error> {
        self.put("ADDED", object);
        Ok(())
    }

    fn update(&self, object: Object) -> Result<(), Error> {
        self.put("MODIFIED", object);
        Ok(())
    }

    fn delete(&self, key: &ObjectKey, last: Option<Object>) -> Result<(), Error> {
        self.objects().remove(key);
        self.print("DELETED", key, last.map(|last| last.resource_version()).unwrap_or_default().as_str());
        Ok(())
    }

    /// A list says what there is, not what changed: that is found by comparing.
    fn replace(&self, list: Replacement) -> Result<(), Error> {
        let old = std::mem::take(&mut *self.objects());
        for object in list.items {
            match old.get(object.key()) {
                None => self.put("ADDED", object),
                Some(known) if known.resource_version() != object.resource_version() => self.put("MODIFIED", object),
                Some(_) => drop(self.objects().insert(object.key().clone(), object)),
            }
        }
        for (key, last) in old {
            if list.unusable.contains(&key) || !list.complete {
                self.objects().entry(key).or_insert(last);
            } else if !self.objects().contains_key(&key) {
                self.print("DELETED", &key, "");
            }
        }
        Ok(())
    }
}

/// Tells on stderr when the watch was interrupted and for how long, and when there is something wrong.
async fn report(status: StatusReader) {
    let mut ticks = tokio::time::interval(Duration::from_millis(200));
    let (mut blind_since, mut told, mut seen) = (Some(Instant::now()), String::new(), 0);
    loop {
        ticks.tick().await;
        let now = status.get();
        let interruptions = now.watch_restarts.values().sum::<u64>() + now.relists.values().sum::<u64>();
        match (now.phase, blind_since) {
            (Phase::Watching, Some(since)) => {
                eprintln!("watching after {:.1?}, {} objects listed", since.elapsed(), now.listed_objects);
                (blind_since, seen) = (None, interruptions);
            }
            (Phase::Watching, None) if interruptions != seen => {
                eprintln!("reconnected: {:?}", now.watch_restarts);
                seen = interruptions;
            }
            (Phase::Watching, None) => {}
            (_, None) => blind_since = now.last_contact.or(Some(Instant::now())),
            (_, Some(_)) => {}
        }
        let error = now.last_error.map(|(error, _)| error.to_string()).unwrap_or_default();
        if error != told {
            eprintln!("{error}");
            told = error;
        }
    }
}

struct Arguments {
    plural: String,
    group: String,
    version: String,
    namespace: Option<String>,
    labels: Option<String>,
    fields: Option<String>,
    metadata: bool,
    http2: bool,
    pages: bool,
}

impl Arguments {
    /// `None` if help was asked for.
    fn parse(mut words: impl Iterator<Item = String>) -> anyhow::Result<Option<Self>> {
        let mut kind = None;
        let (mut namespace, mut labels, mut fields) = (None, None, None);
        let (mut metadata, mut http2, mut pages) = (false, false, false);
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value; see --help"));
            match word.as_str() {
                "-h" | "--help" => return Ok(None),
                "-n" | "--namespace" => namespace = Some(value()?),
                "-l" | "--selector" => labels = Some(value()?),
                "--field-selector" => fields = Some(value()?),
                "--metadata" => metadata = true,
                "--http2" => http2 = true,
                "--pages" => pages = true,
                other if other.starts_with('-') => bail!("unknown option {other}; see --help"),
                _ if kind.is_some() => bail!("one kind at a time; see --help"),
                _ => kind = Some(word),
            }
        }
        let kind = kind.context("which kind? For example: print_changes pods")?;
        let (names, version) = kind.split_once('/').unwrap_or((&kind, "v1"));
        let (plural, group) = names.split_once('.').unwrap_or((names, ""));
        let (plural, group, version) = (plural.to_owned(), group.to_owned(), version.to_owned());
        Ok(Some(Self { plural, group, version, namespace, labels, fields, metadata, http2, pages }))
    }
}
