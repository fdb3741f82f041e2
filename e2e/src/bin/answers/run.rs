//! A story, told to one server.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use watchkeeper_e2e::Failure;

use crate::normal::Seen;
use crate::story::{self, Ask, Step, Story, filled, tidy};
use crate::wire::{Answer, Request, Server};

/// How long something may take that a server does in the background.
const BACKGROUND: Duration = Duration::from_secs(15);

/// The normalised answers to the steps of a story, in order.
pub(crate) async fn told(story: &Story, server: &Server) -> Result<Vec<String>, Failure> {
    let mut telling = Telling {
        server,
        variables: story::built_in(&story.namespace()),
        seen: Seen::of(&server.host),
        watches: BTreeMap::new(),
        answers: Vec::new(),
    };
    telling.make_namespace(&story.namespace()).await?;
    for (at, step) in story.steps.iter().enumerate() {
        match step {
            Step::Ask(ask) => telling.ask(at + 1, ask).await.with_context(|| ask.id.clone())?,
            Step::End(watch) => telling.end(watch).await.with_context(|| format!("the end of {watch}"))?,
            Step::Pause(milliseconds) => sleep(Duration::from_millis(*milliseconds)).await,
        }
    }
    if let Some(watch) = telling.watches.keys().next() {
        bail!("{watch} is never ended");
    }
    Ok(telling.answers)
}

struct Telling<'a> {
    server: &'a Server,
    variables: BTreeMap<String, String>,
    seen: Seen,
    watches: BTreeMap<String, Watching>,
    answers: Vec<String>,
}

/// A watch under way.
struct Watching {
    /// The step that began it.
    number: usize,
    /// Where its answer belongs.
    at: usize,
    reader: JoinHandle<Result<Answer, Failure>>,
    end: oneshot::Sender<()>,
}

impl Telling<'_> {
    async fn make_namespace(&self, name: &str) -> Result<(), Failure> {
        let body = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).to_string();
        let request =
            Request { method: "POST".to_owned(), path: "/api/v1/namespaces".to_owned(), headers: Vec::new(), body };
        match self.server.ask(&request).await?.status {
            201 => Ok(()),
            status => bail!("the namespace {name} cannot be made: {status}"),
        }
    }

    async fn ask(&mut self, number: usize, ask: &Ask) -> Result<(), Failure> {
        let fill = |text: &str| filled(text, &self.variables);
        let request = Request {
            method: ask.method.clone(),
            path: tidy(&fill(&ask.path)),
            headers: ask.headers.iter().map(|(name, value)| (name.clone(), fill(value))).collect(),
            body: fill(&ask.body),
        };
        self.seen.sent(&request.body);
        if let Some(status) = ask.until {
            let answer = self.ask_until(&request, status).await?;
            return self.capture(ask, &answer);
        }
        if let Some(watch) = &ask.watch {
            let opened = self.server.open(&request).await?;
            let (end, ended) = oneshot::channel();
            let reader = tokio::spawn(opened.until_told(ended));
            self.watches.insert(watch.clone(), Watching { number, at: self.answers.len(), reader, end });
            self.answers.push(String::new());
            return Ok(());
        }
        let answer = self.server.ask(&request).await?;
        self.seen.asks(&request.path);
        self.answers.push(self.seen.normalised(number, &answer));
        self.capture(ask, &answer)
    }

    async fn ask_until(&self, request: &Request, status: u16) -> Result<Answer, Failure> {
        let deadline = Instant::now() + BACKGROUND;
        loop {
            let answer = self.server.ask(request).await?;
            if answer.status == status {
                return Ok(answer);
            }
            if Instant::now() > deadline {
                bail!("{} for {} s, not {status}", answer.status, BACKGROUND.as_secs());
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    fn capture(&mut self, ask: &Ask, answer: &Answer) -> Result<(), Failure> {
        for (name, pointer) in &ask.captures {
            let document: Value = serde_json::from_slice(&answer.body).context("the answer is no document")?;
            let value = document.pointer(pointer).with_context(|| format!("{pointer} is not there"))?;
            let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            self.variables.insert(name.clone(), value);
        }
        Ok(())
    }

    async fn end(&mut self, name: &str) -> Result<(), Failure> {
        let Watching { number, at, reader, end } = self.watches.remove(name).context("there is no such watch")?;
        // A watch that has ended by itself listens no more.
        let _ = end.send(());
        let answer = reader.await??;
        self.answers[at] = self.seen.normalised(number, &answer);
        Ok(())
    }
}
