//! What is asked: stories of requests, read from `scripts/*.txt`.
//!
//! ```text
//! == a story              begins one; it has a namespace of its own, {ns}
//! -- what this one shows  the name of the step that follows; without one, its method and path
//! each n: a | b           the step comes once for each value of {n}; `-` is nothing; two such lines multiply
//! as someone              the step is a user's who may do nothing
//! until 200               the step is sent again until this status comes; it is not compared
//! watch w                 the step is a watch that goes on beside those that follow, until `end w`
//! POST /api/v1/namespaces/{ns}/configmaps?dryRun=All
//! Accept: {table}         headers
//! {"metadata": {}}        a body: what begins with a bracket, up to an empty line, or lines that begin with `| `
//! > rv = /metadata/resourceVersion     a part of the answer that later steps know as {rv}, {rv+5} or {rv-5}
//! ```
//!
//! `JSON`, `MERGE`, `STRATEGIC` and `APPLY` are `PATCH` with the content type of that sort of patch.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, bail, ensure};
use watchkeeper_e2e::Failure;

/// The words that stand for something long in every story.
const BUILT_IN: [(&str, &str); 4] = [
    ("table", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
    ("meta", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"),
    ("metalist", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"),
    ("aggregated", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"),
];

/// Steps that follow each other in a namespace of their own.
#[derive(Debug)]
pub(crate) struct Story {
    /// The file and the name: `lists/pages`.
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

impl Story {
    /// The namespace, which is also a fine name for a group.
    pub(crate) fn namespace(&self) -> String {
        self.name.replace(['/', ' '], "-")
    }

    /// How many answers of it are compared.
    pub(crate) fn requests(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Ask(ask) if ask.until.is_none())).count()
    }
}

#[derive(Debug)]
pub(crate) enum Step {
    Ask(Ask),
    /// The watch of this name has seen enough.
    End(String),
    /// Nothing is asked for so many milliseconds.
    Pause(u64),
}

/// One request.
#[derive(Debug, Default, Clone)]
pub(crate) struct Ask {
    /// Unique among all stories.
    pub(crate) id: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) captures: Vec<(String, String)>,
    pub(crate) until: Option<u16>,
    pub(crate) watch: Option<String>,
}

/// Reads a file of stories.
pub(crate) fn parse(file: &str, text: &str) -> Result<Vec<Story>, Failure> {
    let mut reader = Reader { file: file.to_owned(), ..Reader::default() };
    for (number, line) in text.lines().enumerate() {
        reader.line(line.trim_end()).with_context(|| format!("{file}, line {}: {line}", number + 1))?;
    }
    reader.end_of_step().with_context(|| format!("{file}, at its end"))?;
    Ok(reader.stories)
}

/// A text with its variables filled in. What is no variable stays.
pub(crate) fn filled(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut whole = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        whole.push_str(&rest[..start]);
        rest = &rest[start..];
        let value = rest.find('}').and_then(|end| Some((end, value(&rest[1..end], variables)?)));
        match value {
            Some((end, value)) => {
                whole.push_str(&value);
                rest = &rest[end + 1..];
            }
            None => {
                whole.push('{');
                rest = &rest[1..];
            }
        }
    }
    whole + rest
}

fn value(name: &str, variables: &BTreeMap<String, String>) -> Option<String> {
    if let Some(value) = variables.get(name) {
        return Some(value.clone());
    }
    let at = name.find(['+', '-'])?;
    let number: i64 = variables.get(&name[..at])?.parse().ok()?;
    Some((number + name[at..].parse::<i64>().ok()?).to_string())
}

/// The variables that every story has.
pub(crate) fn built_in(namespace: &str) -> BTreeMap<String, String> {
    let words = BUILT_IN.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
    words.chain([("ns".to_owned(), namespace.to_owned())]).collect()
}

#[derive(Default)]
struct Reader {
    file: String,
    stories: Vec<Story>,
    /// The step that is being read; without a method it is still before its request.
    ask: Ask,
    eaches: Vec<(String, Vec<String>)>,
    in_body: bool,
    /// What the story knows by now.
    known: BTreeSet<String>,
    ids: BTreeMap<String, usize>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), Failure> {
        if self.in_body && !line.is_empty() && !line.starts_with("> ") {
            self.ask.body += line;
            self.ask.body.push('\n');
            return Ok(());
        }
        self.in_body = false;
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "" => return self.end_of_step(),
            "#" => {}
            "==" => {
                self.end_of_step()?;
                self.stories.push(Story { name: format!("{}/{rest}", self.file), steps: Vec::new() });
                self.known = built_in("").into_keys().collect();
            }
            ">" => {
                let (name, pointer) = rest.split_once(" = ").context("a capture has a name and a pointer")?;
                ensure!(name != "ns" && BUILT_IN.iter().all(|(word, _)| *word != name), "{name} means something else");
                self.ask.captures.push((name.to_owned(), pointer.to_owned()));
            }
            "|" => {
                self.ask.body += rest;
                self.ask.body.push('\n');
            }
            "end" | "pause" => {
                self.end_of_step()?;
                let step = if word == "end" { Step::End(rest.to_owned()) } else { Step::Pause(rest.parse()?) };
                self.story()?.steps.push(step);
            }
            "--" => rest.clone_into(&mut self.ask.id),
            "as" => self.ask.headers.push(("Impersonate-User".to_owned(), rest.to_owned())),
            "until" => self.ask.until = Some(rest.parse()?),
            "watch" => self.ask.watch = Some(rest.to_owned()),
            "each" => {
                let (name, values) = rest.split_once(": ").context("`each` has a name and values")?;
                let values = values.split(" | ").map(|value| if value == "-" { "" } else { value }.to_owned());
                self.eaches.push((name.to_owned(), values.collect()));
            }
            _ if line.starts_with(['{', '[']) => {
                self.in_body = true;
                return self.line(line);
            }
            _ if self.ask.method.is_empty() => self.request(word, rest)?,
            _ => {
                let (name, value) = line.split_once(": ").context("neither a header nor a body")?;
                self.ask.headers.push((name.to_owned(), value.to_owned()));
            }
        }
        Ok(())
    }

    fn request(&mut self, method: &str, path: &str) -> Result<(), Failure> {
        ensure!(method.bytes().all(|b| b.is_ascii_uppercase()) && path.starts_with(['/', '{']), "no request");
        let patch = match method {
            "JSON" => Some("application/json-patch+json"),
            "MERGE" => Some("application/merge-patch+json"),
            "STRATEGIC" => Some("application/strategic-merge-patch+json"),
            "APPLY" => Some("application/apply-patch+yaml"),
            _ => None,
        };
        if let Some(content_type) = patch {
            self.ask.headers.push(("Content-Type".to_owned(), content_type.to_owned()));
        }
        self.ask.method = if patch.is_some() { "PATCH" } else { method }.to_owned();
        if self.ask.id.is_empty() {
            self.ask.id = format!("{method} {path}");
        }
        path.clone_into(&mut self.ask.path);
        Ok(())
    }

    /// The step is complete, if there is one: once for each combination of its values.
    fn end_of_step(&mut self) -> Result<(), Failure> {
        self.in_body = false;
        if self.ask.method.is_empty() {
            ensure!(self.ask.id.is_empty() && self.eaches.is_empty(), "there is no request here");
            return Ok(());
        }
        let ask = std::mem::take(&mut self.ask);
        let mut combinations = vec![BTreeMap::new()];
        for (name, values) in std::mem::take(&mut self.eaches) {
            let with = |set: &BTreeMap<String, String>, value: &String| {
                let mut set = set.clone();
                set.insert(name.clone(), value.clone());
                set
            };
            combinations = combinations.iter().flat_map(|set| values.iter().map(move |v| with(set, v))).collect();
        }
        for values in combinations {
            self.add(&ask, &values)?;
        }
        self.known.extend(ask.captures.into_iter().map(|(name, _)| name));
        Ok(())
    }

    fn add(&mut self, ask: &Ask, values: &BTreeMap<String, String>) -> Result<(), Failure> {
        let mut ask = ask.clone();
        for text in [&mut ask.path, &mut ask.body, &mut ask.id] {
            *text = filled(text, values);
        }
        for (_, value) in &mut ask.headers {
            *value = filled(value, values);
        }
        let texts = ask.headers.iter().map(|(_, value)| value).chain([&ask.path, &ask.body]);
        for text in texts {
            if let Some(name) = variables(text).find(|name| !self.known.contains(*name)) {
                bail!("{{{name}}} is not known here");
            }
        }
        let id = format!("{}: {}", self.story()?.name, tidy(&ask.id));
        let seen = self.ids.entry(id.clone()).or_default();
        *seen += 1;
        ask.id = if *seen == 1 { id } else { format!("{id} ({seen})") };
        self.story()?.steps.push(Step::Ask(ask));
        Ok(())
    }

    fn story(&mut self) -> Result<&mut Story, Failure> {
        self.stories.last_mut().context("before the first story")
    }
}

/// A path or a name without the parameters that are nothing.
pub(crate) fn tidy(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.trim().to_owned() };
    let query: Vec<&str> = query.split('&').filter(|part| !part.is_empty()).collect();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
}

/// What looks like a variable in a text: `{name}`, which no JSON has.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let name = rest.split_once('}')?.0;
        let name = name.split(['+', '-']).next().unwrap_or(name);
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric());
        is_name.then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(text: &str) -> Vec<Ask> {
        let stories = parse("file", text).expect("stories");
        let steps = stories.into_iter().flat_map(|story| story.steps);
        steps.filter_map(|step| if let Step::Ask(ask) = step { Some(ask) } else { None }).collect()
    }

    #[test]
    fn a_step_has_a_request_headers_a_body_and_captures() {
        let asks = asks(
            "== s\n-- name\nPOST /api\nAccept: {table}\n{\"a\": 1,\n \"b\": {}}\n> rv = /a\n\nMERGE /{rv}\n| a: b\n",
        );
        assert_eq!((asks[0].id.as_str(), asks[0].method.as_str()), ("file/s: name", "POST"));
        assert_eq!(asks[0].headers, [("Accept".to_owned(), "{table}".to_owned())]);
        assert_eq!(asks[0].body, "{\"a\": 1,\n \"b\": {}}\n");
        assert_eq!(asks[0].captures, [("rv".to_owned(), "/a".to_owned())]);
        assert_eq!((asks[1].method.as_str(), asks[1].body.as_str()), ("PATCH", "a: b\n"));
        assert_eq!(asks[1].headers[0].1, "application/merge-patch+json");
    }

    #[test]
    fn lines_of_values_multiply_and_name_the_steps() {
        let asks = asks("== s\neach a: - | x=1\neach b: y=1 | y=2\nGET /p?{a}&{b}\n");
        let ids: Vec<&str> = asks.iter().map(|ask| ask.id.as_str()).collect();
        let expected = ["GET /p?y=1", "GET /p?y=2", "GET /p?x=1&y=1", "GET /p?x=1&y=2"];
        assert_eq!(ids, expected.map(|id| format!("file/s: {id}")));
    }

    #[test]
    fn the_same_request_twice_has_two_names() {
        let asks = asks("== s\nGET /p\n\nGET /p\n");
        assert_eq!(asks[1].id, "file/s: GET /p (2)");
    }

    #[test]
    fn unknown_variables_and_lines_are_refused() {
        for text in [
            "== s\nGET /{nope}\n",
            "GET /p\n",
            "== s\nget /p\n",
            "== s\n-- only a name\n",
            "== s\nGET /p\nwhat\n",
            "== s\nGET /p\n> ns = /a\n",
        ] {
            assert!(parse("file", text).is_err(), "{text}");
        }
    }

    #[test]
    fn variables_are_filled_in_and_counted_with() {
        let variables = BTreeMap::from([("rv".to_owned(), "7".to_owned())]);
        assert_eq!(
            filled(r#"{"a": "{rv}", "b": {"c": "{rv+5} {rv-2} {x}"}}"#, &variables),
            r#"{"a": "7", "b": {"c": "12 5 {x}"}}"#
        );
    }
}
