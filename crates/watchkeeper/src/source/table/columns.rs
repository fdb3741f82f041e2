//! What the columns of a kind are called.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Deserializer};

use super::NO_CELLS;

/// A column of a Table: `metav1.TableColumnDefinition`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TableColumn {
    /// What people call it.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// What is in its cells, in OpenAPI's words: `string`, `integer`, `date`.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub type_: String,
    /// What more is known of that, in OpenAPI's words. That of the column with the name of the object is `name`.
    #[serde(deserialize_with = "or_default")]
    pub format: String,
    /// What it means.
    #[serde(deserialize_with = "or_default")]
    pub description: String,
    /// Those above zero are for people who want to see more than usual: kubectl's `-o wide`.
    #[serde(deserialize_with = "or_default")]
    pub priority: i32,
}

/// The columns of a source's Tables, as the server has last told them. Cheap to clone; clones show the same.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper::{ListWatch, SharedInformer, TableRow};
///
/// # async fn example(client: kube_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let source = ListWatch::of::<Pod>(client).table();
/// let columns = source.columns();
/// let pods = SharedInformer::<TableRow<Pod>>::new(source);
/// pods.start(tokio_util::sync::CancellationToken::new())?;
/// for pod in pods.synced().await?.list().iter() {
///     let row = pod.decode()?;
///     for (column, cell) in columns.get().iter().zip(&row.cells) {
///         println!("{}: {cell}", column.name);
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct TableColumns(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    columns: Arc<[TableColumn]>,
    /// What stands where in the first columns that were told.
    first: Option<u64>,
    /// How far that has changed since: 0, if it has not.
    layout: u64,
}

/// The layout of what came without cells when no columns were known: there are no Tables.
const NO_LAYOUT: u64 = u64::MAX;

impl TableColumns {
    /// The columns, in the order of a row's cells. There are none before the first answer, nor if the server has no Tables.
    ///
    /// They may change: when somebody changes a custom kind, or when another server answers. A row that was read before has
    /// the cells of the old ones until its object changes, or is listed again.
    pub fn get(&self) -> Arc<[TableColumn]> {
        self.lock().columns.clone()
    }

    /// Takes what a Table says. Later events of a watch say nothing (`null`); and what cannot be read is no reason to do
    /// without the objects.
    pub(in crate::source) fn learn(&self, definitions: &[u8]) {
        let Ok(Some(columns)) = serde_json::from_slice::<Option<Vec<TableColumn>>>(definitions) else { return };
        let mut known = self.lock();
        if !columns.is_empty() && *columns != *known.columns {
            let mut names = DefaultHasher::new();
            columns.iter().for_each(|column| column.name.hash(&mut names));
            let names = names.finish();
            let first = known.first.unwrap_or(names);
            *known = Known { columns: columns.into(), first: Some(first), layout: names ^ first };
        }
    }

    /// A number that is another one if cells mean something else. Cells that come before any columns do are taken for those
    /// of the first ones: the event that told them may have been lost.
    pub(in crate::source) fn layout_of(&self, cells: &str) -> u64 {
        let known = self.lock();
        if known.columns.is_empty() && cells == NO_CELLS { NO_LAYOUT } else { known.layout }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TableColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.get().iter().map(|column| &column.name)).finish()
    }
}

/// `null` is what it is in Go: nothing.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(columns: &TableColumns) -> Vec<String> {
        columns.get().iter().map(|column| column.name.clone()).collect()
    }

    #[test]
    fn what_says_nothing_changes_nothing() {
        let columns = TableColumns::default();
        columns.learn(br#"[{"name":"Name","type":"string","priority":1},{"name":"Age","format":null}]"#);
        let (known, layout) = (columns.get(), columns.layout_of("[7]"));
        let name = TableColumn { name: "Name".into(), type_: "string".into(), priority: 1, ..TableColumn::default() };
        assert_eq!(known[0], name);
        for nothing in ["null", "[]", "{}", "7", r#"[{"name":7}]"#, r#"[{"priority":1e99}]"#, "[", ""] {
            columns.learn(nothing.as_bytes());
            assert!(Arc::ptr_eq(&columns.get(), &known), "{nothing}");
        }
        assert_eq!(columns.layout_of("[7]"), layout);
    }

    #[test]
    fn the_layout_is_what_stands_where() {
        let columns = TableColumns::default();
        let layout_of = |definitions: &str| {
            columns.learn(definitions.as_bytes());
            columns.layout_of(NO_CELLS)
        };
        assert_ne!(columns.layout_of(NO_CELLS), columns.layout_of("[7]"), "a row of a Table is more than an object");
        let unknown = columns.layout_of("[7]");
        let first = layout_of(r#"[{"name":"A"},{"name":"B"}]"#);
        assert_eq!(layout_of(r#"[{"name":"A"},{"name":"B","description":"in other words"}]"#), first);
        assert_eq!(first, unknown, "that there are columns does not change a row");
        assert_ne!(layout_of(r#"[{"name":"B"},{"name":"A"}]"#), first);
        assert_ne!(layout_of(r#"[{"name":"AB"}]"#), first);
        assert_eq!(layout_of(r#"[{"name":"A"},{"name":"B"}]"#), first);
        assert_eq!(names(&columns), ["A", "B"]);
        assert_eq!(format!("{columns:?}"), r#"["A", "B"]"#);
    }
}
