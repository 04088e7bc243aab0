//! The GPUs of this host as the accelerators of an engine whose matrix is on them.
//!
//! A child looks for them: libraries of drivers may crash a process or never return.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use hpl::backend::device::{DeviceError, FoundGpus, GpuFacts};
use hpl::machine::host::HostFacts;
use objectives::foreign::MatrixMemory;
use objectives::real::answer_within;
use space::machine::{Host, Machine, Node};

use crate::exit::bad_input;
use crate::session::engine::Engine;

/// Engines by the platform whose devices they use.
const PLATFORMS: [(&str, &str); 6] = [
    ("cuda", "cuda"),
    ("nvidia", "cuda"),
    ("nvidia-mxp", "cuda"),
    ("hip", "hip"),
    ("rochpl", "hip"),
    ("rochpl-mxp", "hip"),
];

/// What the drivers say of the GPUs here, by platform.
pub type Drivers = [(&'static str, Result<FoundGpus, DeviceError>); 2];

/// The hidden verb that looks for GPUs, as the program must dispatch it to [`main`].
pub const VERB: &str = "__gpus";

/// The device of the system that a driver of each platform has.
const DEVICES: [(&str, &str); 2] = [("cuda", "/dev/nvidiactl"), ("hip", "/dev/kfd")];

/// Time limit of the child: the driver of a node of many GPUs takes long to start, and so does it to load libraries from a network.
const ANSWERS: Duration = Duration::from_mins(1);

/// Bytes of a GPU that driver and libraries take at least, and the part of its memory. Of free memory a run loses no more than the bytes.
const RESERVED_BYTES: u64 = 1 << 30;
const RESERVED_PART: u64 = 20;

/// Runs the verb: prints what the drivers say as JSON.
pub fn main() -> ExitCode {
    let found = FoundGpus::look().map(|(_, found)| found);
    let Ok(text) = serde_json::to_string(&found) else { return ExitCode::FAILURE };
    println!("{text}");
    ExitCode::SUCCESS
}

/// What the drivers say, asked by a child of `program`.
pub fn look(program: &Path) -> Drivers {
    let answer = answer_within(Command::new(program).arg(VERB), ANSWERS);
    let told = answer.and_then(|text| serde_json::from_str::<[Result<FoundGpus, DeviceError>; 2]>(&text).ok());
    let reason =
        "its libraries crashed, or did not answer within a minute: try hpl-tune doctor, and the driver's own tools";
    let silent = |platform: &str| {
        Err(DeviceError { device: platform.to_owned(), reason: reason.to_owned(), lacks_memory: false })
    };
    let [cuda, hip] = told.unwrap_or_else(|| ["cuda", "hip"].map(silent));
    [("cuda", cuda), ("hip", hip)]
}

/// Whether the system has a driver of this platform.
pub fn driver_is_here(platform: &str) -> bool {
    DEVICES.iter().any(|(of, device)| *of == platform && Path::new(device).exists())
}

/// This host with its GPUs as a description, for an engine whose matrix is on devices; `None` for other engines, and where another
/// program's GPUs are not found.
///
/// # Errors
/// Our engine on GPUs without one that can be used.
pub fn described(
    engine: &Engine,
    facts: &HostFacts,
    look: impl FnOnce() -> Drivers,
) -> anyhow::Result<Option<Machine>> {
    let Engine::Foreign(foreign) = engine else { return Ok(None) };
    let profile = foreign.profile();
    if profile.memory != MatrixMemory::Device {
        return Ok(None);
    }
    let wanted = PLATFORMS.iter().find(|(name, _)| *name == profile.name).map(|(_, platform)| *platform);
    let fits = |(platform, _): &(&'static str, Result<FoundGpus, DeviceError>)| wanted.is_none_or(|it| it == *platform);
    let mut found = look().into_iter().filter(fits).map(|(_, found)| found).collect::<Vec<_>>();
    match found.iter().position(Result::is_ok).map(|at| found.swap_remove(at)) {
        Some(Ok(gpus)) => Ok(Some(machine(&gpus, facts))),
        // Its own name: this engine.
        _ if wanted == Some(&*profile.name) => match found.into_iter().find_map(Result::err) {
            Some(error) => Err(bad_input(format!("--engine {}: {error}", profile.name))),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// One node with those of these GPUs that are used together.
pub(super) fn machine(gpus: &FoundGpus, facts: &HostFacts) -> Machine {
    let used = gpus.in_use();
    let least = used.iter().map(|device| device.memory_bytes).min().unwrap_or(0);
    let fillable = used.iter().map(fillable_bytes).min().unwrap_or(0);
    let node = Node {
        name: facts.hostname.clone(),
        count: 1,
        cores: facts.cores_allowed.len(),
        // Ranks have equal shares.
        memory_bytes: least.saturating_mul(used.len() as u64),
        reserved_bytes: least.saturating_sub(fillable).saturating_mul(used.len() as u64),
        accelerators: Some(used.len()),
        ..Node::default()
    };
    let host = Host { name: facts.hostname.clone(), origin: gpus.to_string(), ..Host::default() };
    Machine { host, nodes: vec![node], ..Machine::default() }
}

/// Bytes of a GPU that a run can fill; at least 1, as a description keeps less than all.
fn fillable_bytes(gpu: &GpuFacts) -> u64 {
    let all = gpu.memory_bytes;
    let own = RESERVED_BYTES.min(all / 4);
    let free = gpu.free_bytes.map_or(all, |free| free.saturating_sub(own));
    (all - (all / RESERVED_PART).max(own)).min(free).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(memory_bytes: u64, free_bytes: Option<u64>) -> GpuFacts {
        GpuFacts { name: "GPU".to_owned(), memory_bytes, free_bytes }
    }

    fn drivers(cuda: Option<&[u64]>) -> Drivers {
        let found = |bytes: &[u64]| FoundGpus {
            platform: "cuda".to_owned(),
            driver: "12.9".to_owned(),
            libraries: vec!["libcuda.so.1".to_owned()],
            devices: bytes.iter().map(|&memory_bytes| gpu(memory_bytes, None)).collect(),
        };
        let none = |device: &str| DeviceError {
            device: device.to_owned(),
            reason: "no driver".to_owned(),
            lacks_memory: false,
        };
        [("cuda", cuda.map(found).ok_or_else(|| none("cuda"))), ("hip", Err(none("hip")))]
    }

    fn of(engine: &str, cuda: Option<&[u64]>) -> anyhow::Result<Option<Machine>> {
        let engine = Engine::chosen(Some(engine), None, None).unwrap();
        described(&engine, &hpl::machine::host::facts(), || drivers(cuda))
    }

    #[test]
    fn the_gpus_of_this_host_are_its_accelerators() {
        for engine in ["cuda", "nvidia"] {
            let machine = of(engine, Some(&[80 << 30, 96 << 30])).unwrap().unwrap();
            let node = &machine.nodes[0];
            assert_eq!(
                (node.count, node.accelerators, node.memory_bytes),
                (1, Some(2), 160 << 30),
                "that of the smallest"
            );
            assert!(machine.host.origin.contains("driver 12.9"), "{}", machine.host.origin);
            Machine::parse(&machine.to_toml().unwrap()).unwrap();
        }
    }

    /// The first run failed.
    #[test]
    fn memory_that_other_processes_use_is_left_to_them() {
        let fillable = |free_bytes| fillable_bytes(&gpu(80 << 30, free_bytes));
        assert_eq!([None, Some(79 << 30)].map(fillable), [76 << 30; 2]);
        assert_eq!([Some(20 << 30), Some(0)].map(fillable), [19 << 30, 1]);
        let devices = vec![gpu(80 << 30, Some(79 << 30)), gpu(80 << 30, Some(21 << 30))];
        let (platform, driver) = ("cuda".to_owned(), "12.9".to_owned());
        let found = FoundGpus { platform, driver, libraries: Vec::new(), devices };
        let machine = machine(&found, &hpl::machine::host::facts());
        let node = &machine.nodes[0];
        assert_eq!(node.memory_bytes - node.reserved_bytes, 40 << 30, "equal shares");
        assert!(machine.host.origin.contains("GB free)"), "{}", machine.host.origin);
    }

    #[test]
    fn without_a_gpu_only_our_engine_is_refused() {
        assert_eq!(of("cuda", None).unwrap_err().to_string(), "--engine cuda: cuda device: no driver");
        assert_eq!(of("hip", Some(&[80])).unwrap_err().to_string(), "--engine hip: hip device: no driver");
        assert!(of("nvidia", None).unwrap().is_none() && of("rochpl", Some(&[80])).unwrap().is_none());
        assert!(of("netlib", Some(&[80])).unwrap().is_none());
    }
}
