//! Files that a user writes, and words on the command line.

use std::path::Path;

use hpl::observe::trace::StepRange;
use hpl::plan::windows::{Window, Windows};
use objectives::foreign::{Foreign, Profile};
use objectives::launcher::{self, MpiJob};
use objectives::simulated::SimulatedCluster;
use objectives::timeline::own::OwnModel;
use space::dat::{DatError, HplDat};
use space::dims::Space;
use space::domain::{DomainSpec, ForeignDomain, HplDomain, Limits};
use space::machine::Machine;
use space::weights_file::WeightsFile;
use space::{Candidate, Candidates, DeviceRequest, EngineFile, EngineParams, HplParams, KernelChoice, Share, Unequal};
use tuner::pack::site::Site;

use super::utf8;

/// Runs of an HPL.dat of which the list is made, and about as many points of a profile's space, so that the others take no time.
const FEW: usize = 1000;

/// HPL.dat.
pub(super) fn hpl_dat(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let dat = match HplDat::parse(&text) {
        Ok(dat) => dat,
        Err(error) => {
            assert!(error.to_string().len() < 1000);
            return;
        }
    };
    let lists = [dat.ns.len(), dat.nbs.len(), dat.grids.len(), dat.depths.len(), dat.bcasts.len(), dat.rfacts.len()];
    if lists.iter().product::<usize>() < FEW {
        assert!(!dat.runs().is_empty());
    }
    match dat.write() {
        Ok(text) => {
            let back = HplDat::parse(&text).expect("what was written can be read");
            // Control characters of comments are not written.
            assert_eq!(HplDat { comments: dat.comments.clone(), ..back.clone() }, dat);
            assert_eq!(back.write().as_ref(), Ok(&text));
        }
        Err(error) => assert!(matches!(error, DatError::Value { line: 3, .. }), "{error}"),
    }
}

/// `machine.toml`, and the model of our engine on it.
pub(super) fn machine(data: &[u8]) {
    let Some(Ok(machine)) = utf8(data).map(Machine::parse) else { return };
    let text = machine.to_toml().expect("what was read can be written");
    assert_eq!(Machine::parse(&text).expect("what was written can be read"), machine);
    if let Some(model) = OwnModel::new(&machine) {
        let candidate = Candidate { hpl: HplParams::baseline(1000, 2, 2), engine: EngineParams::default() };
        let _ = (model.time_s(&candidate), model.warnings(&candidate));
    }
}

/// The space that limits are put on.
fn spec() -> DomainSpec {
    DomainSpec {
        n: 2000,
        cores: 1,
        memory_bytes: 1 << 30,
        kernels: KernelChoice::Builtin,
        ranks: None,
        threads: None,
        most_threads: None,
        common_cores: None,
        unequal: Unequal::default(),
    }
}

/// `space.toml` of `--space`.
pub(super) fn limits(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    if let Ok(limits) = Limits::parse(text) {
        let _ = HplDomain::within(&spec(), &limits).map_err(|error| error.to_string());
    }
}

/// The weights file.
pub(super) fn weights(data: &[u8]) {
    let Some(Ok(file)) = utf8(data).map(WeightsFile::parse) else { return };
    let text = file.to_toml().expect("what was read can be written");
    assert_eq!(WeightsFile::parse(&text).expect("what was written can be read"), file);
}

/// `engine-params.toml`.
pub(super) fn engine_params(data: &[u8]) {
    let Some(Ok(EngineFile { params, .. })) = utf8(data).map(EngineFile::parse) else { return };
    let text = toml_of(&params);
    let again = EngineFile::parse(&text).expect("what was written can be read");
    assert_eq!(again, EngineFile { params, divide_cores: false });
}

fn toml_of(value: &impl serde::Serialize) -> String {
    toml::to_string(value).expect("what was read can be written")
}

/// An engine's profile: its space, and the command and input of a candidate.
pub(super) fn engine_profile(data: &[u8]) {
    let Some(Ok(profile)) = utf8(data).map(Profile::parse) else { return };
    // As text, in which a number that is none equals itself.
    let text = toml_of(&profile);
    assert_eq!(toml_of(&Profile::parse(&text).expect("what was written can be read")), text);
    let Ok(engine) = Foreign::new(profile) else { return };
    let obeyed = engine.profile().obeyed();
    let Ok(domain) = ForeignDomain::with_at_most(&spec(), &obeyed, &Limits::default(), FEW) else { return };
    let folder = Path::new("/run");
    let usual = domain.usual();
    assert!(!engine.command(&usual, folder).is_empty());
    let _ = (engine.environment(&usual, folder), engine.input(&usual));
    for point in domain.points().iter().take(3) {
        assert!(domain.point(&domain.candidate(point)).is_some());
    }
    engine.read("WR11C2R4 1000 128 1 2 3.50 9.7500e+01\n||Ax-b||_oo/(eps)= 2.1e-03 ...... PASSED\n");
}

/// The description of a simulated cluster.
pub(super) fn cluster(data: &[u8]) {
    let Some(Ok(cluster)) = utf8(data).map(SimulatedCluster::parse) else { return };
    let text = toml_of(&cluster);
    SimulatedCluster::parse(&text).expect("what was written can be read");
}

/// `site.toml` of a pack.
pub(super) fn site(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    match Site::parse(text) {
        Ok(site) => assert!(site.iter().all(|(path, value)| site.text(path) == Some(value) && !value.is_empty())),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Words of flags: launchers, kernels, windows, steps, shares.
pub(super) fn flags(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    let words = launcher::words(text);
    assert!(words.iter().all(|word| !word.is_empty() && !word.contains(char::is_whitespace)) || words[0] == text);
    let candidate = Candidate { hpl: HplParams::baseline(1000, 2, 2), engine: EngineParams::default() };
    assert!(!MpiJob::new(text, "xhpl".into()).command(&candidate).is_empty());
    let _ = (text.parse::<DeviceRequest>(), text.parse::<Share>().map(|share| share.to_string().parse::<Share>()));
    let _ = text.parse::<Window>().map(|window| window.check(10));
    let _ = text.parse::<StepRange>().map(|steps| steps.check(10));
    let _ = text.parse::<Windows>();
    let kernels = KernelChoice::from(text.to_owned());
    assert_eq!(KernelChoice::from(String::from(kernels.clone())), kernels);
}
