//! What drivers ask the server for beside pods.

use std::io;
use std::sync::Arc;

use crate::http::{Connection, Request};
use crate::state::State;

/// Answers a request under `/control/`; an error is the client's.
pub(crate) fn answer(state: &Arc<State>, request: &Request, connection: &mut Connection) -> io::Result<()> {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/control/sent") => match sent(state, request) {
            Ok(times) => connection.answer(200, "application/octet-stream", &times),
            Err(message) => connection.answer(400, "text/plain", message.as_bytes()),
        },
        ("GET", "/control/keys") => match keys(state, request) {
            Ok(keys) => connection.answer(200, "text/plain", keys.as_bytes()),
            Err(message) => connection.answer(400, "text/plain", message.as_bytes()),
        },
        (method, path) => match json(state, request, method, path) {
            Some(Ok(body)) => connection.answer(200, "application/json", body.as_bytes()),
            Some(Err(message)) => connection.answer(400, "text/plain", message.as_bytes()),
            None => connection.answer(404, "text/plain", format!("there is no {method} {path} here\n").as_bytes()),
        },
    }
}

fn json(state: &Arc<State>, request: &Request, method: &str, path: &str) -> Option<Result<String, String>> {
    Some(match (method, path) {
        ("POST", "/control/reset") => {
            state.reset();
            Ok("{}".to_owned())
        }
        ("POST", "/control/expire") => Ok(format!("{{\"marker\":\"{}\"}}", state.expire())),
        ("POST", "/control/events") => events(state, request),
        ("GET", "/control/digest") => {
            let digest = state.pods.digest(&state.snapshot().revisions);
            Ok(format!("{{\"objects\":{},\"digest\":\"{digest:016x}\"}}", state.pods.len()))
        }
        ("GET", "/control/usage") => cpu_seconds().map(|seconds| format!("{{\"cpu_s\":{seconds:.2}}}")),
        _ => return None,
    })
}

fn events(state: &Arc<State>, request: &Request) -> Result<String, String> {
    let pods = state.pods.len();
    let count = request.number("count", 0)? as usize;
    let over = request.number("over", pods as u64)? as usize;
    let rate = request.number("rate", 0)?;
    if count == 0 || over == 0 || over > pods {
        return Err(format!("count must be 1 or more, and over 1 to {pods}, the number of pods\n"));
    }
    let (first, last) = state.events(count, over, rate);
    Ok(format!("{{\"first\":\"{first}\",\"last\":\"{last}\"}}"))
}

fn sent(state: &State, request: &Request) -> Result<Vec<u8>, String> {
    let (first, last) = (request.number("first", 0)?, request.number("last", 0)?);
    let times = state.sent(first, last).ok_or_else(|| format!("not all events {first} to {last} were sent\n"))?;
    Ok(times.iter().flat_map(|time| time.to_le_bytes()).collect())
}

fn keys(state: &State, request: &Request) -> Result<String, String> {
    let order = state.pods.order();
    let count = (request.number("count", 1000)? as usize).min(order.len());
    let lines = (0..count).map(|nth| {
        let number = order[nth * order.len() / count];
        let template = state.pods.template(number);
        format!("{} {} {}\n", state.pods.key(number), template.node, template.app)
    });
    Ok(lines.collect())
}

/// What this process has used, of all its threads, those that ended too.
fn cpu_seconds() -> Result<f64, String> {
    let stat = std::fs::read_to_string("/proc/self/stat").map_err(|error| format!("no /proc here: {error}\n"))?;
    // Behind the name in parentheses; the 14th and 15th of all, in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |nth: usize| fields.get(nth).and_then(|field| field.parse::<f64>().ok());
    match (ticks(11), ticks(12)) {
        (Some(user), Some(system)) => Ok((user + system) / 100.0),
        _ => Err("/proc/self/stat has no times\n".to_owned()),
    }
}
