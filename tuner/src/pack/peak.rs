//! Rpeak: cores × operations of a core in a cycle × clock, with where each factor is from.

use serde::{Deserialize, Serialize};

use super::facts::Processor;
use super::site::Site;

/// Operations per cycle by processor, each with its source.
const PROCESSORS: &str = include_str!("../../../datasets/processors.toml");

/// The theoretical peak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// Of all nodes, in GFLOP/s.
    pub gflops: f64,
    /// How it is computed, with its factors.
    pub formula: String,
    /// The clock that it assumes, in GHz; `None` where the site gives the peak itself.
    pub clock_ghz: Option<f64>,
    /// Where the factors are from.
    pub from: String,
}

/// How far a score may lie above Rpeak, as a ratio: processors that boost are above their nominal clock.
const ABOVE: f64 = 1.2;

/// The nodes that a peak is of.
#[derive(Debug, Clone, Copy, Default)]
pub struct PeakNodes<'a> {
    /// Their number; `None` where it is not known.
    pub count: Option<usize>,
    /// The processor of each; `None` where the run was on another host.
    pub processor: Option<&'a Processor>,
    /// Accelerators of each; `None` where the host does not say, or the run was on another one.
    pub accelerators: Option<usize>,
    /// Whether accelerators held the matrix.
    pub on_accelerators: bool,
    /// Whether they are known to have different processors, cores or accelerators.
    pub differ: bool,
}

#[derive(Deserialize)]
struct ProcessorTable {
    processor: Vec<KnownProcessor>,
}

#[derive(Deserialize)]
struct KnownProcessor {
    name: String,
    vendor: String,
    family: u32,
    models: [u32; 2],
    flops_per_cycle: u32,
    source: String,
}

/// FP64 operations of one core in a cycle, with their source; `None` for a processor that the table does not have.
fn flops_per_cycle(processor: &Processor) -> Option<(f64, String)> {
    let table: ProcessorTable = toml::from_str(PROCESSORS).expect("a test reads the table");
    let (vendor, family, model) = (processor.vendor.as_ref()?, processor.family?, processor.model_number?);
    let is_it = |entry: &&KnownProcessor| {
        entry.vendor == *vendor && entry.family == family && (entry.models[0]..=entry.models[1]).contains(&model)
    };
    let entry = table.processor.iter().find(is_it)?;
    Some((f64::from(entry.flops_per_cycle), format!("{}: {}", entry.name, entry.source)))
}

impl Peak {
    /// That of these nodes, where the site does not say more.
    ///
    /// # Errors
    /// What is not known, and how to give it.
    pub fn new(of: &PeakNodes<'_>, site: &Site) -> Result<Self, String> {
        let PeakNodes { count: nodes, processor, accelerators, on_accelerators, differ } = *of;
        if let Some(gflops) = site.number("peak.gflops") {
            let formula =
                site.text("peak.formula").ok_or("in site.toml, [peak] formula = \"…\": how gflops was computed")?;
            let from = "site.toml, [peak] gflops".to_owned();
            return Ok(Self { gflops, formula: formula.to_owned(), clock_ghz: site.number("peak.clock_ghz"), from });
        }
        if on_accelerators {
            return Err("in site.toml, [peak] gflops and formula: the matrix was on accelerators".to_owned());
        }
        if differ {
            return Err("the nodes differ (nodes.csv): in site.toml, [peak] gflops and formula".to_owned());
        }
        match site.number("system.accelerators_per_node").or(accelerators.map(|count| count as f64)) {
            Some(count) if count > 0.0 => {
                return Err(
                    "in site.toml, [peak] gflops and formula: the nodes have accelerators; or, where they are no part of the system, \
                     [system] accelerators_per_node = 0"
                        .to_owned(),
                );
            }
            Some(_) => {}
            None => {
                return Err("in site.toml, [system] accelerators_per_node = …: it is not known whether the nodes have accelerators"
                    .to_owned());
            }
        }
        let count = |path: &str, found: Option<usize>| site.number(path).map(|count| count as usize).or(found);
        let nodes = count("system.nodes", nodes).ok_or("in site.toml, [system] nodes = …")?;
        let sockets = count("system.sockets_per_node", processor.and_then(|processor| processor.sockets));
        let cores = count("system.cores_per_socket", processor.and_then(|processor| processor.cores_per_socket));
        let sockets = sockets.ok_or("in site.toml, [system] sockets_per_node = …")?;
        let cores = cores.ok_or("in site.toml, [system] cores_per_socket = …")?;
        let given =
            site.number("peak.flops_per_cycle").map(|flops| (flops, "site.toml, [peak] flops_per_cycle".to_owned()));
        let (flops, of_core) = given.or_else(|| flops_per_cycle(processor?)).ok_or(
            "in site.toml, [peak] flops_per_cycle = …: the processor is not in the table of hpl-tune, or has one or two units",
        )?;
        let (ghz, of_clock) = clock(processor, site)?;
        let gflops = (nodes * sockets * cores) as f64 * flops * ghz;
        let plural = |count: usize, name: &str| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
        let formula = format!(
            "{} × {} × {} × {flops} FP64 operations per cycle × {ghz} GHz",
            plural(nodes, "node"),
            plural(sockets, "socket"),
            plural(cores, "core"),
        );
        Ok(Self { gflops, formula, clock_ghz: Some(ghz), from: format!("operations: {of_core}; clock: {of_clock}") })
    }

    /// This, if a score of `rmax_gflops` may be that of a system with it.
    ///
    /// # Errors
    /// The score is too far above, and how to give the right one.
    pub fn of_score(self, rmax_gflops: f64) -> Result<Self, String> {
        if rmax_gflops <= ABOVE * self.gflops {
            return Ok(self);
        }
        Err(format!(
            "in site.toml, [peak] gflops and formula, or clock_ghz: Rmax is {:.2} times {} GFLOP/s ({}), so that more nodes or accelerators took \
             part, or the clock was higher",
            rmax_gflops / self.gflops,
            self.gflops,
            self.formula
        ))
    }
}

/// The nominal clock in GHz, and where it is from.
fn clock(processor: Option<&Processor>, site: &Site) -> Result<(f64, String), String> {
    if let Some(ghz) = site.number("peak.clock_ghz") {
        return Ok((ghz, "site.toml, [peak] clock_ghz".to_owned()));
    }
    if let Some(mhz) = site.number("system.processor_mhz") {
        return Ok((mhz / 1e3, "site.toml, [system] processor_mhz".to_owned()));
    }
    let nominal = processor.and_then(|processor| processor.nominal_mhz.zip(processor.nominal_from.clone()));
    nominal.map(|(mhz, from)| (mhz / 1e3, from)).ok_or_else(|| {
        let now = processor.and_then(|processor| processor.now_mhz);
        let now = now.map_or(String::new(), |mhz| {
            format!("; its clock at this moment is {mhz:.0} MHz, which may differ from the nominal one")
        });
        format!("in site.toml, [peak] clock_ghz = …: the system does not report the nominal clock{now}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processor(vendor: &str, family: u32, model: u32) -> Processor {
        Processor {
            vendor: Some(vendor.to_owned()),
            family: Some(family),
            model_number: Some(model),
            sockets: Some(2),
            cores_per_socket: Some(64),
            nominal_mhz: Some(2450.0),
            nominal_from: Some("base_frequency of the clock's driver".to_owned()),
            ..Processor::default()
        }
    }

    /// So many nodes with this processor, without accelerators.
    fn nodes(count: usize, processor: &Processor) -> PeakNodes<'_> {
        PeakNodes { count: Some(count), processor: Some(processor), accelerators: Some(0), ..PeakNodes::default() }
    }

    fn site(text: &str) -> Site {
        Site::parse(text).unwrap()
    }

    /// Published by the TOP500: Fugaku, 7,630,848 cores of 2.2 GHz in nodes of 48, Rpeak 537,212 TFLOP/s.
    #[test]
    fn rpeak_is_cores_by_operations_by_clock() {
        let fugaku = Processor { sockets: Some(1), cores_per_socket: Some(48), ..processor("0x46", 0, 1) };
        let fugaku = Processor { nominal_mhz: Some(2200.0), ..fugaku };
        let peak = Peak::new(&nodes(7_630_848 / 48, &fugaku), &Site::default()).unwrap();
        assert!((peak.gflops / 1e3 - 537_212.0).abs() < 0.5, "{peak:?}");
        let milan = processor("AuthenticAMD", 25, 1);
        let peak = Peak::new(&nodes(1, &milan), &Site::default()).unwrap();
        assert_eq!(peak.formula, "1 node × 2 sockets × 64 cores × 16 FP64 operations per cycle × 2.45 GHz");
        assert!(peak.from.contains("56665") && peak.from.contains("base_frequency"), "{}", peak.from);
        let faster = Peak::new(&nodes(4, &milan), &site("[peak]\nclock_ghz = 3.5\n")).unwrap();
        assert!((faster.gflops - 4.0 * 128.0 * 16.0 * 3.5).abs() < 1e-9 && faster.from.contains("[peak] clock_ghz"));
    }

    #[test]
    fn what_is_not_known_is_missing_and_named() {
        let skylake = processor("GenuineIntel", 6, 85);
        let missing = |processor: &Processor, text: &str| Peak::new(&nodes(1, processor), &site(text)).unwrap_err();
        assert!(missing(&skylake, "").contains("flops_per_cycle"));
        assert!(Peak::new(&nodes(1, &skylake), &site("[peak]\nflops_per_cycle = 32\n")).is_ok());
        let guest = Processor { nominal_mhz: None, now_mhz: Some(2600.0), ..processor("AuthenticAMD", 25, 17) };
        assert!(missing(&guest, "").contains("clock_ghz") && missing(&guest, "").contains("2600 MHz"));
        assert!(missing(&guest, "[system]\naccelerators_per_node = 4\n").contains("[peak] gflops"));
        // The rate of a node with accelerators is no share of what its processors can do.
        let two = PeakNodes { accelerators: Some(2), ..nodes(1, &skylake) };
        let with_two = |text: &str| Peak::new(&two, &site(text));
        assert!(with_two("[peak]\nflops_per_cycle = 32\n").unwrap_err().contains("the nodes have accelerators"));
        assert!(with_two("[system]\naccelerators_per_node = 0\n[peak]\nflops_per_cycle = 32\n").is_ok());
        assert!(missing(&guest, "[peak]\ngflops = 1e5\n").contains("formula"));
        let unknown = |of: PeakNodes<'_>| Peak::new(&of, &Site::default()).unwrap_err();
        assert!(unknown(PeakNodes { count: None, ..nodes(1, &skylake) }).contains("[system] nodes"));
        assert!(unknown(PeakNodes { processor: None, ..nodes(1, &skylake) }).contains("sockets_per_node"));
        assert!(unknown(PeakNodes { accelerators: None, ..nodes(1, &skylake) }).contains("accelerators_per_node"));
        let given = Peak::new(&PeakNodes::default(), &site("[peak]\ngflops = 1e5\nformula = \"4 × H100\"\n")).unwrap();
        assert_eq!((given.gflops, given.formula.as_str(), given.clock_ghz), (1e5, "4 × H100", None));
    }

    #[test]
    fn the_processors_are_no_peak_of_a_run_on_accelerators() {
        let milan = processor("AuthenticAMD", 25, 1);
        let on_accelerators = PeakNodes { on_accelerators: true, ..nodes(1, &milan) };
        let missing = |text: &str| Peak::new(&on_accelerators, &site(text)).unwrap_err();
        assert!(missing("").contains("[peak] gflops"));
        assert!(missing("[system]\naccelerators_per_node = 0\n").contains("the matrix was on accelerators"));
        assert!(Peak::new(&on_accelerators, &site("[peak]\ngflops = 1e5\nformula = \"2 × MI250X\"\n")).is_ok());
    }

    #[test]
    fn the_peak_of_unequal_nodes_is_not_that_of_this_one_times_their_number() {
        let milan = processor("AuthenticAMD", 25, 1);
        let unequal = PeakNodes { differ: true, ..nodes(4, &milan) };
        assert!(Peak::new(&unequal, &Site::default()).unwrap_err().contains("the nodes differ (nodes.csv)"));
        assert!(Peak::new(&unequal, &site("[peak]\ngflops = 1e5\nformula = \"2 × A + 2 × B\"\n")).is_ok());
    }

    #[test]
    fn a_score_far_above_the_peak_makes_the_peak_missing() {
        let milan = processor("AuthenticAMD", 25, 1);
        let peak = Peak::new(&nodes(1, &milan), &Site::default()).unwrap();
        assert_eq!(peak.clone().of_score(1.1 * peak.gflops), Ok(peak.clone()), "a processor that boosts");
        let message = peak.clone().of_score(4.0 * peak.gflops).unwrap_err();
        assert!(message.contains("[peak] gflops") && message.contains("Rmax is 4.00 times"), "{message}");
    }

    #[test]
    fn every_processor_of_the_table_has_a_source_and_is_there_once() {
        let table: ProcessorTable = toml::from_str(PROCESSORS).unwrap();
        for (index, entry) in table.processor.iter().enumerate() {
            assert!(!entry.source.is_empty() && entry.models[0] <= entry.models[1], "{}", entry.name);
            for other in &table.processor[..index] {
                let apart = entry.vendor != other.vendor
                    || entry.family != other.family
                    || entry.models[0] > other.models[1]
                    || entry.models[1] < other.models[0];
                assert!(apart, "{} and {}", entry.name, other.name);
            }
        }
    }
}
