//! `site.toml`: what only people know of a site, its system and its power meter.
//!
//! The table of keys is what `pack --init` writes, what is read back strictly, and what `pack --check` points to.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// A whole number from 0.
    Count,
    /// A number from 0.
    Number,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A key of `site.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Its table and name, `system.year`.
    pub path: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What it says, in one line.
    pub about: &'static str,
}

impl Key {
    /// Its table, and its name there.
    pub fn parts(&self) -> (&'static str, &'static str) {
        self.path.split_once('.').expect("a key has a table")
    }

    /// How it is given.
    pub fn how(&self) -> String {
        let (table, name) = self.parts();
        let value = match self.kind {
            Kind::Text => "\"…\"".to_owned(),
            Kind::Count | Kind::Number => "…".to_owned(),
            Kind::Flag => "true or false".to_owned(),
            Kind::Word(words) => words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or "),
        };
        format!("in site.toml, [{table}] {name} = {value}")
    }
}

/// Where the meter is, seen from the conversion of power in the machine (\[Green500\], aspect 4).
pub const POINTS: [&str; 3] = ["upstream", "downstream-modelled", "downstream"];

use Kind::{Count, Flag, Number, Text, Word};

const fn key(path: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { path, kind, about }
}

/// All keys, in the order in which they are written.
pub const KEYS: [Key; 48] = [
    key("site.organisation", Text, "Institution that runs the system"),
    key("site.city", Text, "Its city"),
    key("site.country", Text, "Its country"),
    key("site.segment", Text, "Academic, Classified, Government, Industry, Research or Vendor"),
    key("site.contact_name", Text, "Who answers questions"),
    key("site.contact_email", Text, "And where"),
    key("system.name", Text, "Name of the system or cluster"),
    key("system.manufacturer", Text, "Manufacturer or vendor"),
    key("system.model", Text, "Model of the system or its nodes"),
    key("system.year", Count, "Year of the installation or of the last major update"),
    key("system.nodes", Count, "Nodes that took part in the run"),
    key("system.processor", Text, "Model of the processor"),
    key("system.processor_mhz", Number, "Its nominal clock in MHz"),
    key("system.sockets_per_node", Count, "Sockets of a node"),
    key("system.cores_per_socket", Count, "Cores of a socket"),
    key("system.memory_per_node_gib", Number, "Memory of a node in GiB"),
    key("system.accelerator", Text, "Model of the accelerators, \"none\" without any"),
    key("system.accelerators_per_node", Count, "Accelerators of a node, 0 without any"),
    key("system.accelerator_fp64_cores", Count, "FP64 cores of one accelerator, 0 without any"),
    key("system.interconnect", Text, "Network between the nodes, with its rate"),
    key("system.os", Text, "Operating system"),
    key("system.compiler", Text, "Compiler of the program that ran, with its version"),
    key("system.math_library", Text, "Library of the kernels, with its version"),
    key("system.mpi", Text, "MPI library, with its version"),
    key("system.binary", Text, "Where the program that ran is from: own build, vendor, container with its tag"),
    key("system.cooling", Text, "Air, water, immersion …"),
    key("system.footprint_m2", Number, "Floor that the system takes, in square metres"),
    key("system.racks", Count, "Racks of the system"),
    key(
        "peak.flops_per_cycle",
        Number,
        "FP64 operations of one core in one cycle, where the processor is not in the table",
    ),
    key("peak.clock_ghz", Number, "Clock that Rpeak is to assume, in GHz: the nominal one"),
    key("peak.gflops", Number, "Rpeak of all nodes in GFLOP/s, in place of cores × operations × clock"),
    key("peak.formula", Text, "How that was computed, with its clock"),
    key("run.n_half", Count, "N½: the order that reaches half of Rmax, where you have measured it"),
    key("run.cores_used", Count, "Cores that the run used, where accelerators held its matrix"),
    key("power.meter", Text, "Power meter: manufacturer and model"),
    key("power.accuracy_percent", Number, "Its accuracy in per cent, as certified"),
    key(
        "power.integrating",
        Flag,
        "Whether it integrates energy all the time, so that a reading is the mean since the last one",
    ),
    key(
        "power.point",
        Word(&POINTS),
        "Where it measures: upstream of power conversion, downstream with the losses modelled, or downstream",
    ),
    key("power.nodes_measured", Count, "Nodes behind the meter"),
    key("power.random_nodes", Flag, "Whether these were chosen at random, where they are not all"),
    key("power.network_measured", Flag, "Whether the network between the nodes is behind the meter"),
    key("power.subsystems", Text, "What else is behind the meter: storage, cooling inside the racks, service nodes …"),
    key("power.idle_watts", Number, "Mean power of the same nodes when idle, in watts"),
    key("power.core_watts", Number, "Mean power of the core phase in watts, without --power-log"),
    key("power.run_watts", Number, "Mean power of the whole run in watts, without --power-log"),
    key("power.peak_watts", Number, "Highest power during the run in watts, network included, without --power-log"),
    key("power.temperature_c", Number, "Temperature of the air or water that cools, at the inlet, in °C"),
    key("power.notes", Text, "What else a reader of the power figures should know"),
];

/// The key of this path.
pub fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// What is wrong with a `site.toml`. Lines count from 1.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SiteError {
    /// It cannot be read.
    #[error("cannot read it: {0}; hpl-tune pack --init writes one to fill in")]
    Unreadable(String),
    /// It is no TOML; the text says the line.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// A table or key that is not known.
    #[error("line {line}: {name} is unknown; hpl-tune pack --init lists all keys")]
    Unknown {
        /// Where.
        line: usize,
        /// Its name, with its table.
        name: String,
    },
    /// A value of the wrong kind.
    #[error("line {line}: {name} must be {wanted}")]
    Value {
        /// Where.
        line: usize,
        /// The key, with its table.
        name: String,
        /// What is accepted.
        wanted: String,
    },
}

/// What a `site.toml` says: values by the path of their key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Site {
    values: BTreeMap<&'static str, String>,
}

impl Site {
    /// Reads the text of a `site.toml`. An empty text counts as not given.
    ///
    /// # Errors
    /// [`SiteError`] with the line.
    pub fn parse(text: &str) -> Result<Self, SiteError> {
        let line = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
        let mut values = BTreeMap::new();
        for (table, keys) in DeTable::parse(text)?.get_ref() {
            let DeValue::Table(keys) = keys.get_ref() else {
                return Err(SiteError::Unknown {
                    line: line(table.span().start),
                    name: format!("{} outside of a table", table.get_ref()),
                });
            };
            let named = format!("{}.", table.get_ref());
            if !KEYS.iter().any(|key| key.path.starts_with(&named)) {
                return Err(SiteError::Unknown {
                    line: line(table.span().start),
                    name: format!("[{}]", table.get_ref()),
                });
            }
            for (name, value) in keys {
                let line = line(name.span().start);
                let name = format!("[{}] {}", table.get_ref(), name.get_ref());
                let Some(key) = find(&name.replace("] ", ".")[1..]) else {
                    return Err(SiteError::Unknown { line, name });
                };
                let wanted = |wanted: &str| SiteError::Value { line, name: name.clone(), wanted: wanted.to_owned() };
                let value = read(key.kind, value.get_ref()).map_err(|what| wanted(&what))?;
                if !value.is_empty() {
                    values.insert(key.path, value);
                }
            }
        }
        Ok(Self { values })
    }

    /// The value of a key, as text.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.values.get(path).map(String::as_str)
    }

    /// The value of a key that takes a number.
    pub fn number(&self, path: &str) -> Option<f64> {
        self.text(path)?.parse().ok()
    }

    /// The value of a key that takes `true` or `false`.
    pub fn flag(&self, path: &str) -> Option<bool> {
        self.text(path)?.parse().ok()
    }

    /// All values by the path of their key.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(path, value)| (*path, value.as_str()))
    }
}

/// A value as text, or what is accepted.
fn read(kind: Kind, value: &DeValue<'_>) -> Result<String, String> {
    let number = || match value {
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number as f64)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
        _ => None,
    };
    let number = || number().filter(|number| number.is_finite() && *number >= 0.0);
    match kind {
        Text => match value {
            DeValue::String(text) if text.chars().any(|c| c.is_control()) => Err("a text of one line".to_owned()),
            DeValue::String(text) => Ok(text.trim().to_owned()),
            _ => Err("a text in quotes".to_owned()),
        },
        Word(words) => match value {
            DeValue::String(text) if text.is_empty() || words.contains(&text.as_ref()) => Ok(text.to_string()),
            _ => Err(format!("one of \"{}\"", words.join("\", \""))),
        },
        Flag => match value {
            DeValue::Boolean(flag) => Ok(flag.to_string()),
            _ => Err("true or false".to_owned()),
        },
        Count => match (value, number()) {
            (DeValue::Integer(_), Some(count)) => Ok(count.to_string()),
            _ => Err("a whole number from 0".to_owned()),
        },
        Number => number().map(|number| number.to_string()).ok_or_else(|| "a number from 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_their_kind() {
        let text = "[site]\norganisation = \"A & B\"\ncity = \"\"\n[system]\nyear = 2026\nprocessor_mhz = 2600\n[power]\n\
                    point = \"upstream\"\nrandom_nodes = true\naccuracy_percent = 0.5\n";
        let site = Site::parse(text).unwrap();
        assert_eq!(site.text("site.organisation"), Some("A & B"));
        assert_eq!((site.text("site.city"), site.text("site.country")), (None, None));
        assert_eq!((site.number("system.year"), site.number("system.processor_mhz")), (Some(2026.0), Some(2600.0)));
        assert_eq!((site.flag("power.random_nodes"), site.number("power.accuracy_percent")), (Some(true), Some(0.5)));
        assert_eq!(site.iter().count(), 6);
    }

    #[test]
    fn wrong_files_are_named_with_their_line() {
        for (text, words) in [
            ("[site]\norganisation = \"A\n", "line 2"),
            ("[site]\n\n[sight]\nx = 1\n", "line 3: [sight] is unknown"),
            ("[site]\ncity = \"A\"\nmayor = \"B\"\n", "line 3: [site] mayor is unknown"),
            ("year = 2026\n", "line 1: year outside of a table"),
            ("[system]\nyear = \"2026\"\n", "line 2: [system] year must be a whole number"),
            ("[system]\nyear = 20.5\n", "line 2: [system] year must be a whole number"),
            ("[system]\nname = 7\n", "line 2: [system] name must be a text in quotes"),
            ("[system]\n\nracks = -1\n", "line 3: [system] racks must be a whole number from 0"),
            ("[peak]\nclock_ghz = nan\n", "line 2: [peak] clock_ghz must be a number"),
            ("[power]\npoint = \"wall\"\n", "line 2: [power] point must be one of \"upstream\""),
            ("[power]\nrandom_nodes = 1\n", "line 2: [power] random_nodes must be true or false"),
            ("[site]\ncity = \"a\\nb\"\n", "line 2: [site] city must be a text of one line"),
        ] {
            let message = Site::parse(text).unwrap_err().to_string();
            assert!(message.contains(words), "{text}: {message}");
        }
    }

    #[test]
    fn keys_are_distinct_and_say_how_they_are_given() {
        let mut paths: Vec<&str> = KEYS.iter().map(|key| key.path).collect();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), KEYS.len());
        assert_eq!(find("system.year").unwrap().how(), "in site.toml, [system] year = …");
        assert!(
            find("power.point").unwrap().how().ends_with("\"upstream\" or \"downstream-modelled\" or \"downstream\"")
        );
    }
}
