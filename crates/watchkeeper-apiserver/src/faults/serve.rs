//! A request that something may happen to, from its arrival to its answer.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tower::BoxError;

use super::wire::{Cut, Interruption, OnSocket, Wire};
use super::{Ending, Fault, StallAt, events, items, objects, restart};
use crate::http::Body;
use crate::http::accept::{Representation, representation};
use crate::http::answer::Answer;
use crate::http::service::{self, verb_of};
use crate::kinds::Kind;
use crate::server::Inner;
use crate::storage::Filter;
use crate::tables::Table;
use crate::verbs::filter;

const PAGE: &[u8] =
    b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1>\
    </center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n";

/// What rules and faults must know of a request.
pub(super) struct Asked {
    pub(super) verb: &'static str,
    pub(super) kind: Arc<Kind>,
    pub(super) version: String,
    pub(super) partial: bool,
    /// How objects become rows, if that is asked for.
    pub(super) table: Option<Table>,
    pub(super) initial_events: bool,
    /// It came through a port.
    pub(super) on_socket: bool,
    /// The objects that it means; none, if its selectors are bad.
    pub(super) filter: Option<Filter>,
    /// With the query.
    pub(super) path: String,
}

/// Answers a request as the rules want it. Its body is read only if it is answered.
pub(crate) async fn answer<B>(server: Arc<Inner>, request: Request<B>, gzip: bool) -> Result<Response<Body>, BoxError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let on_socket = request.extensions().get::<OnSocket>().is_some();
    let asked = Asked::of(&server, &request).map(Arc::new);
    let faults = asked.as_ref().map(|asked| server.faults.draw(&server, asked)).unwrap_or_default();
    if let Some(instead) = before(&server, &faults, asked.as_deref()).await? {
        return Ok(instead);
    }
    let answer = service::answer(server.clone(), request).await;
    let answer = match asked {
        Some(asked) => changed(answer, &server, asked, &faults),
        None => answer,
    };
    let response = answer.into_response(gzip);
    Ok(behind(&server, &faults, response, on_socket).await)
}

impl Asked {
    /// None, if it does not ask for objects, or for none that there could be.
    fn of<B>(server: &Inner, request: &Request<B>) -> Option<Self> {
        let (verb, kind, path, options) = verb_of(server, request.method(), request.uri())?;
        let representation = representation(request.headers()).ok();
        let partial = matches!(representation, Some(Representation::Metadata { .. }));
        let table = match representation {
            Some(Representation::Table { beta }) => Table::new(&path.version, &options.include_object, beta).ok(),
            _ => None,
        };
        let initial_events = match options.send_initial_events {
            Some(asked) => asked,
            None => matches!(options.resource_version.as_str(), "" | "0"),
        };
        let filter = filter(&kind, path.namespace.as_deref(), path.name.as_deref(), &options).ok();
        let version = path.version;
        let on_socket = request.extensions().get::<OnSocket>().is_some();
        let path = request.uri().to_string();
        Some(Self { verb, kind, version, partial, table, filter, initial_events, on_socket, path })
    }
}

/// What happens before the server hears of the request, or in its place.
async fn before(
    server: &Arc<Inner>,
    faults: &[Fault],
    asked: Option<&Asked>,
) -> Result<Option<Response<Body>>, BoxError> {
    for fault in faults {
        match fault {
            Fault::Stall { at: StallAt::Headers, time } => Interruption::of(server).wait(*time).await?,
            Fault::Compact { revision } => {
                server.storage.compact(revision.unwrap_or_else(|| server.storage.revision()));
            }
            Fault::Restart { keep_data } => {
                restart(server, *keep_data);
                return Err(Cut { ending: Ending::Reset }.into());
            }
            Fault::Refuse => return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into()),
            Fault::Status { code, reason, retry_after } => {
                let status = objects::status(*code, reason, *retry_after).to_string();
                let mut response = page(*code, "application/json", status.into());
                if let Some(seconds) = retry_after {
                    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(*seconds));
                }
                return Ok(Some(response));
            }
            Fault::HtmlPage { code } => return Ok(Some(page(*code, "text/html", Bytes::from_static(PAGE)))),
            Fault::Garbage { bytes, .. } if asked.is_some_and(|asked| asked.verb != "watch") => {
                return Ok(Some(page(200, "application/json", bytes.clone())));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// What happens to the objects of the answer.
fn changed(answer: Answer, server: &Arc<Inner>, asked: Arc<Asked>, faults: &[Fault]) -> Answer {
    let meant = |is_meant: fn(&Fault) -> bool| -> Vec<Fault> {
        faults.iter().filter(|fault| is_meant(fault)).cloned().collect()
    };
    let (of_events, of_items) = (meant(events::is_meant), meant(items::is_meant));
    // Single objects may have a field of the name `items` too.
    let is_list = matches!(asked.verb, "list" | "deletecollection");
    let answer = match is_list && !of_items.is_empty() {
        true => answer.map_parts(|parts| items::inject(parts, &of_items)),
        false => answer,
    };
    let ends_after = faults.iter().find_map(|fault| match fault {
        Fault::EndAfter { time } => Some(*time),
        _ => None,
    });
    let answer = match ends_after {
        Some(time) => answer.map_stream(|lines| lines.take_until(tokio::time::sleep(time)).boxed()),
        None => answer,
    };
    match of_events.is_empty() {
        true => answer,
        false => answer.map_stream(|lines| events::inject(lines, of_events, server.clone(), asked)),
    }
}

/// What happens to its bytes.
async fn behind(server: &Inner, faults: &[Fault], response: Response<Body>, on_socket: bool) -> Response<Body> {
    let mut wire = Wire::default();
    for fault in faults {
        wire.add(fault);
    }
    let (head, mut body) = response.into_parts();
    // A watch has no length, and is cut within its first event; compressed lists have none either, but an end.
    let is_whole =
        head.headers.contains_key(CONTENT_LENGTH) || head.headers.contains_key(http::header::CONTENT_ENCODING);
    if is_whole && faults.contains(&Fault::Truncate) {
        let whole = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        wire.cut_at(whole.len() / 2, Ending::Fin);
        body = full(whole);
    }
    Response::from_parts(head, wire.wrap(body, server, on_socket))
}

/// An answer that the server knows nothing of.
fn page(code: u16, content_type: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    *response.body_mut() = full(body);
    response
}

fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}
