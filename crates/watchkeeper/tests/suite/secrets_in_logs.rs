//! No object body and no credential in any log line, error text or `Debug`: a canary in every place where one could get
//! out, and a look at all that was said.

use std::collections::VecDeque;
use std::fmt::{Debug, Display, Write as _};
use std::io;
use std::sync::{Arc, Mutex};

use http::{Request, Response, StatusCode};
use k8s_openapi::api::core::v1::Secret;
use kube_client::client::{AuthError, Body, ConfigExt as _};
use kube_client::{Client, Config};
use serde::Deserialize;
use tower::Layer as _;
use tracing_subscriber::fmt::MakeWriter;
use watchkeeper::{
    ListOptions, ListPart, ListWatch, ListerWatcher as _, Object, Pager, Reflector, Replacement, WatchEvent,
};

use crate::support::*;

const CANARY: &str = "c4n4ry-of-the-object";
const TOKEN: &str = "c4n4ry-of-the-token";

/// All that was said, in logs and otherwise.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<u8>>>);

impl Said {
    /// Notes both forms of a value.
    fn note(&self, value: &(impl Debug + Display)) {
        self.note_debug(value);
        self.write_text(&value.to_string());
    }

    fn note_debug(&self, value: &impl Debug) {
        let mut text = String::new();
        write!(text, "{value:?} {value:#?}").expect("text");
        self.write_text(&text);
    }

    fn write_text(&self, text: &str) {
        self.0.lock().unwrap().extend_from_slice(format!("{text}\n").as_bytes());
    }

    #[track_caller]
    fn holds_no_canary(&self) -> String {
        let text = String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned();
        let canary = text.find("c4n4ry").map(|at| text[..at].lines().last().unwrap_or_default());
        assert_eq!(canary, None, "a canary got out behind this");
        text
    }
}

impl io::Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Said {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Everything that is traced on this thread goes to the returned record.
fn listen() -> (Said, tracing::subscriber::DefaultGuard) {
    let said = Said::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::FULL)
        .with_writer(said.clone())
        .finish();
    (said, tracing::subscriber::set_default(subscriber))
}

fn secret_json(name: &str, metadata: &str) -> String {
    format!(
        r#"{{"kind":"Secret","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"shop","resourceVersion":"5","annotations":{{"a":"{CANARY}"}}{metadata}}},"data":{{"password":"{CANARY}"}},"type":"{CANARY}"}}"#
    )
}

/// Objects with the canary in them that cannot be used, each in another way. The last two have no readable key.
fn bad_secrets() -> Vec<Vec<u8>> {
    let named = [
        secret_json("wrong", &format!(r#","labels":{{"l":{{"x":"{CANARY}"}}}}"#)),
        secret_json("uid", &format!(r#","uid":["{CANARY}"]"#)),
        secret_json("nested", "").replace(
            &format!("\"password\":\"{CANARY}\""),
            &format!("\"{CANARY}\":{}{}", "[".repeat(20_000), "]".repeat(20_000)),
        ),
        secret_json("large", "").replace("\"password\"", &format!("\"{CANARY}{}\"", "x".repeat(60_000))),
        secret_json("old", "").replace(r#""resourceVersion":"5","#, ""),
        secret_json("nameless", "").replace(r#""name":"nameless","#, &format!(r#""name":{{"x":"{CANARY}"}},"#)),
    ];
    let mut bad: Vec<Vec<u8>> = named.iter().map(|text| text.as_bytes().to_vec()).collect();
    let latin = secret_json("latin", "#").into_bytes();
    bad.push(
        latin.iter().flat_map(|byte| if *byte == b'#' { b",\"x\":\"\xff\"".to_vec() } else { vec![*byte] }).collect(),
    );
    bad
}

fn secret_list(items: &[Vec<u8>]) -> Vec<u8> {
    let mut list = br#"{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":["#.to_vec();
    list.extend(items.join(&b','));
    list.extend(b"]}");
    list
}

fn event(event_type: &str, object: &[u8]) -> Vec<u8> {
    [format!("{{\"type\":\"{event_type}\",\"object\":").as_bytes(), object, b"}\n"].concat()
}

/// Lines of a watch with the canary in them, each of which ends the watch or is passed over.
fn bad_lines() -> Vec<Vec<u8>> {
    let secret = secret_json("a", "");
    let cut = &secret[..secret.len() - 20];
    let mut lines: Vec<Vec<u8>> = bad_secrets().iter().map(|object| event("MODIFIED", object)).collect();
    lines.extend([
        event(CANARY, secret.as_bytes()),
        event("ADDED", secret.replace("\"Secret\"", "\"ConfigMap\"").as_bytes()),
        event("ADDED", cut.as_bytes()),
        event("ERROR", secret.as_bytes()),
        event("ADDED", format!("\"{CANARY}\"").as_bytes()),
        event("BOOKMARK", secret.replace("\"resourceVersion\":\"5\",", "").as_bytes()),
        format!("{{\"{CANARY}\":\"{CANARY}\"}}\n").into_bytes(),
        format!("<html>{CANARY}</html>\n").into_bytes(),
        format!("{{\"type\":\"ADDED\",\"object\":{{{CANARY}}}}}\n").into_bytes(),
    ]);
    lines
}

fn bad_lists() -> Vec<Vec<u8>> {
    let good = secret_json("a", "").into_bytes();
    let mut lists: Vec<Vec<u8>> = bad_secrets().into_iter().map(|bad| secret_list(&[good.clone(), bad])).collect();
    let whole = secret_list(&[good]);
    lists.extend([
        whole[..whole.len() - 30].to_vec(),
        [&whole[..], CANARY.as_bytes()].concat(),
        format!("<html>{CANARY}</html>").into_bytes(),
        format!(r#"{{"kind":"{CANARY}","items":[]}}"#).into_bytes(),
        format!(r#"{{"kind":"SecretList","metadata":{{"resourceVersion":{{"x":"{CANARY}"}}}},"items":[]}}"#)
            .into_bytes(),
        format!(r#"{{"kind":"SecretList","items":"{CANARY}"}}"#).into_bytes(),
        format!(r#"{{"kind":"SecretList","items":[{{"x":{CANARY}}}]}}"#).into_bytes(),
    ]);
    lists
}

/// Refusals whose bodies are no Status.
fn refusals() -> Vec<Response<TestBody>> {
    let texts = [format!("<html>{CANARY}</html>"), format!(r#"{{"message":"{CANARY}"}}"#), secret_json("a", "")];
    let codes = [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::FORBIDDEN, StatusCode::BAD_GATEWAY];
    texts
        .into_iter()
        .zip(codes)
        .map(|(text, code)| {
            let mut answer = ok(text);
            *answer.status_mut() = code;
            answer
        })
        .collect()
}

/// A client of a server that answers with these, and with the last one for ever; the token goes with each request.
fn secrets(
    answers: Vec<Response<TestBody>>,
    last: impl Fn() -> Response<TestBody> + Clone + Send + 'static,
) -> ListWatch {
    let mut config = Config::new("https://server.test".parse().expect("an address"));
    config.auth_info.token = Some(TOKEN.to_owned().into());
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let service = tower::service_fn(move |request: Request<Body>| {
        assert_eq!(request.headers()["authorization"], format!("Bearer {TOKEN}").as_str());
        let answer = answers.lock().unwrap().pop_front().unwrap_or_else(&last);
        async move { Ok::<_, tower::BoxError>(answer) }
    });
    let service = config.auth_layer().expect("a layer").expect("a token").layer(service);
    let client = Client::new(config.base_uri_layer().layer(service), "default");
    ListWatch::of::<Secret>(client).max_object_size(50_000)
}

fn answers(texts: Vec<Vec<u8>>) -> Vec<Response<TestBody>> {
    texts.into_iter().map(ok).collect()
}

fn nothing() -> Response<TestBody> {
    Response::new(body(vec![Piece::Hang]))
}

#[tokio::test(start_paused = true)]
async fn reading_lists_shows_no_body() {
    let (said, _listening) = listen();
    let lists = bad_lists();
    let count = lists.len();
    let source = secrets(answers(lists), nothing);
    for _ in 0..count {
        let mut listing = source.list(ListOptions::default()).await.expect("an answer");
        loop {
            match listing.next().await {
                Ok(None) => break,
                Ok(Some(part)) => {
                    said.note_debug(&part);
                    if let ListPart::Bad(object) = &part {
                        said.note(object);
                    }
                }
                Err(error) => break said.note(&error),
            }
        }
    }
    let said = said.holds_no_canary();
    assert!(said.contains("Object(shop/a@5)") && said.contains("it is larger than the limit"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn reading_watches_shows_no_body() {
    let (said, _listening) = listen();
    let lines = bad_lines();
    let count = lines.len();
    let source = secrets(answers(lines), nothing);
    for _ in 0..count {
        let mut stream = source.watch(ListOptions::default()).await.expect("an answer");
        loop {
            match stream.next().await {
                Ok(None) => break,
                Ok(Some(event)) => {
                    said.note_debug(&event);
                    if let WatchEvent::Error(error) = &event {
                        said.note(error);
                    }
                }
                Err(error) => break said.note(&error),
            }
        }
    }
    let said = said.holds_no_canary();
    assert!(said.contains("WrongKind") && said.contains("Unknown"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn refusals_show_no_body() {
    let (said, _listening) = listen();
    let refusals = refusals();
    let count = refusals.len();
    let source = secrets(refusals, nothing);
    for _ in 0..count {
        said.note(&source.list(ListOptions::default()).await.map(drop).expect_err("a refusal"));
    }
    said.note_debug(&source);
    assert!(said.holds_no_canary().contains("list secrets: 403 Forbidden"));
}

#[tokio::test(start_paused = true)]
async fn a_reflector_logs_no_body_whatever_it_meets() {
    let (said, _listening) = listen();
    let good = || ok(secret_list(&[secret_json("a", "").into_bytes()]));
    let mut script = refusals();
    script.extend(answers(bad_lists()));
    for line in bad_lines() {
        script.extend([good(), ok(line)]);
    }
    let count = script.len();
    let left = Arc::new(Mutex::new(0));
    let asked = left.clone();
    let source = secrets(script, move || {
        *asked.lock().unwrap() += 1;
        nothing()
    });
    let store = Recorder::new();
    let hook = said.clone();
    let reflector = Reflector::new(source, store.clone())
        .streaming_lists(false)
        .list_idle_timeout(seconds(3_600))
        .on_watch_error(move |error| hook.note(error));
    let status = reflector.status();
    let running = Running::start(reflector);
    for _ in 0..10 * count {
        pass(seconds(10)).await;
        said.note_debug(&status);
        said.note_debug(&status.get());
        if *left.lock().unwrap() > 0 {
            break;
        }
    }
    assert!(*left.lock().unwrap() > 0, "the script was played to its end");
    running.stop().await;
    let said = said.holds_no_canary();
    for line in ["will list again", "an object keeps its last good state", "backing off", "passed over"] {
        assert!(said.contains(line), "{line} was logged: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_logs_no_body() {
    let (said, _listening) = listen();
    let source = secrets(answers(bad_lines()), nothing);
    let store = Recorder::new();
    let reflector = Reflector::new(source, store.clone());
    let status = reflector.status();
    let running = Running::start(reflector);
    pass(seconds(3_000)).await;
    said.note_debug(&status);
    running.stop().await;
    assert!(said.holds_no_canary().contains("a streaming list failed"));
}

#[test]
fn objects_and_decode_errors_show_no_body() {
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    #[allow(dead_code)]
    enum Sort {
        Opaque,
    }
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct ByType {
        r#type: Sort,
    }
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct ByData {
        data: Vec<u8>,
    }
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}

    let (said, _listening) = listen();
    let object = Object::from_json(secret_json("a", r#","labels":{"app":"web"}"#)).expect("an object");
    said.note_debug(&object);
    said.note_debug(&object.labels());
    said.note(&object.decode::<Secret>().expect_err("the canary is not base64"));
    said.note(&object.decode::<ByType>().expect_err("no such variant"));
    said.note(&object.decode::<ByData>().expect_err("no sequence"));
    said.note(&object.decode::<Nothing>().expect_err("unknown fields"));
    said.note(&object.decode::<bool>().expect_err("no bool"));
    said.note_debug(&Replacement { items: vec![object.clone()], ..Replacement::default() });
    for bad in bad_secrets() {
        let _ = Object::from_json(bad).inspect_err(|error| said.note(error));
    }
    said.note(&Object::from_json(format!("{{\"{CANARY}\":{CANARY}}}")).expect_err("no JSON"));
    let text = said.holds_no_canary();
    assert!(text.contains("data.password") && text.contains("Secret shop/a at version 5"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_paged_list_shows_no_body() {
    let (said, _listening) = listen();
    let items: Vec<Vec<u8>> = std::iter::once(secret_json("a", "").into_bytes()).chain(bad_secrets()).collect();
    let list = Pager::over(secrets(vec![ok(secret_list(&items))], nothing)).list(ListOptions::default()).await;
    let list = list.expect("a list");
    assert_eq!((list.items.len(), list.bad.len()), (1, bad_secrets().len()));
    said.note_debug(&list);
    said.holds_no_canary();
}

#[tokio::test(start_paused = true)]
async fn the_output_of_a_credential_plugin_is_not_shown() {
    let (said, _listening) = listen();
    let failures: [fn() -> AuthError; 3] = [
        || AuthError::AuthExecRun {
            cmd: format!("TOKEN=\"{TOKEN}\" plugin --secret {TOKEN}"),
            out: Box::new(std::process::Output {
                status: std::process::ExitStatus::default(),
                stdout: TOKEN.into(),
                stderr: TOKEN.into(),
            }),
        },
        || AuthError::ParseTokenKey(serde_json::from_str::<bool>(&format!("\"{TOKEN}\"")).expect_err("no bool")),
        || AuthError::MalformedTokenExpirationDate(TOKEN.parse::<jiff::Timestamp>().expect_err("no date")),
    ];
    for failure in failures {
        let service = tower::service_fn(move |_: Request<Body>| async move {
            Err::<Response<TestBody>, tower::BoxError>(Box::new(failure()))
        });
        let source = ListWatch::of::<Secret>(Client::new(service, "default"));
        let error = source.list(ListOptions::default()).await.map(drop).expect_err("no credentials");
        assert_eq!(error.kind(), watchkeeper::ErrorKind::Connect);
        said.note(&error);
    }
    assert!(said.holds_no_canary().contains("the credential plugin failed"));
}
