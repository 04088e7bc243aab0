//! A batch script for Slurm that starts a session, and goes on with it when it is submitted again.

use std::ffi::OsString;
use std::path::Path;

use objectives::real::quoted;

/// Seconds of the job beyond the budget: for the start of the job and its last output.
const MARGIN_S: f64 = 300.0;

/// Flags that a resume takes, and does not know from the session.
const OF_THE_OUTPUT: [&str; 5] = ["--json", "--quiet", "-q", "--verbose", "-v"];

/// What a job asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobRequest {
    /// Its nodes; `None` for as many as its tasks need.
    pub nodes: Option<usize>,
    /// Its tasks with the cores of each; `None` for all cores of its nodes.
    pub tasks: Option<(usize, usize)>,
    /// Accelerators.
    pub accelerators: Option<usize>,
}

impl JobRequest {
    /// Its lines in a script.
    fn lines(self) -> String {
        let nodes = self.nodes.map(|nodes| format!("#SBATCH --nodes={nodes}\n"));
        let tasks =
            self.tasks.map(|(tasks, cores)| format!("#SBATCH --ntasks={tasks}\n#SBATCH --cpus-per-task={cores}\n"));
        // Of the job, not of the task: a task that saw one accelerator alone could not choose it by its place on the node.
        let gpus = self.accelerators.map(|count| format!("#SBATCH --gpus={count}\n"));
        [nodes, tasks, gpus].into_iter().flatten().collect()
    }
}

/// The script that runs `words`, a command line of hpl-tune without its own `--sbatch`, `--nodes` and `--out`, in a job that asks for
/// this, for `budget_s` seconds, with its results in `out`; paths among the words begin in `folder`.
pub fn script(words: &[OsString], request: JobRequest, budget_s: f64, folder: &Path, out: &Path) -> String {
    let request = request.lines();
    let seconds = (budget_s + MARGIN_S).ceil() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds % 3600 / 60, seconds % 60);
    let (program, flags) = words
        .split_first()
        .map_or((String::new(), Vec::new()), |(program, flags)| (quoted([program]).concat(), quoted(flags)));
    let output = flags.iter().filter(|flag| OF_THE_OUTPUT.contains(&flag.as_str()));
    let again: String = output.map(|flag| format!(" {flag}")).collect();
    format!(
        "#!/bin/bash\n\
         #SBATCH --job-name=hpl-tune\n\
         {request}\
         #SBATCH --exclusive\n\
         #SBATCH --mem=0\n\
         #SBATCH --time={hours:02}:{minutes:02}:{seconds:02}\n\
         #SBATCH --requeue\n\
         # The session goes on without a node that fails, unless that is the first one: then end the job by scancel, and submit it again.\n\
         #SBATCH --no-kill\n\
         #SBATCH --open-mode=append\n\
         # Slurm's end comes a minute early, so that the record is closed.\n\
         #SBATCH --signal=B:TERM@60\n\
         cd {} || exit 2\n\
         out={}\n\
         # Submitted again after a stop, it goes on where it stopped.\n\
         if [ -f \"$out/session.toml\" ]; then exec {program} --resume \"$out\"{again}; fi\n\
         exec {program} {} --out \"$out\"\n",
        quoted([folder]).concat(),
        quoted([out]).concat(),
        flags.join(" ")
    )
}

/// The words of this command line without the flags in `left_out` and their values.
pub fn without(words: impl IntoIterator<Item = OsString>, left_out: &[&str]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if left_out.contains(&text.as_ref()) {
            words.next();
        } else if !left_out.iter().any(|flag| text.starts_with(&format!("{flag}="))) {
            kept.push(word);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_flags_of_the_script_itself_are_left_out() {
        let kept =
            without(words("hpl-tune --budget 4h --sbatch f --out=x --engine hpcc --out y"), &["--sbatch", "--out"]);
        assert_eq!(kept, words("hpl-tune --budget 4h --engine hpcc"));
    }

    #[test]
    fn the_script_is_bash_and_repeats_the_command() {
        let line = words("printf <%s> --budget 4h");
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("it's mine");
        let tasks = JobRequest { tasks: Some((8, 2)), ..JobRequest::default() };
        let with_gpus = script(&line, JobRequest { accelerators: Some(8), ..tasks }, 60.0, folder.path(), &out);
        assert!(with_gpus.contains("\n#SBATCH --gpus=8\n"));
        let nodes = script(&line, JobRequest { nodes: Some(64), ..JobRequest::default() }, 60.0, folder.path(), &out);
        assert!(nodes.contains("--nodes=64\n#SBATCH --exclusive\n#SBATCH --mem=0\n"), "{nodes}");
        let text = script(&line, tasks, 14_400.0, folder.path(), &out);
        assert!(
            text.contains("--ntasks=8\n#SBATCH --cpus-per-task=2\n") && text.contains("--time=04:05:00\n"),
            "{text}"
        );
        let path = folder.path().join("job.sh");
        std::fs::write(&path, &text).unwrap();
        let run = || String::from_utf8(std::process::Command::new("bash").arg(&path).output().unwrap().stdout).unwrap();
        assert_eq!(run(), format!("<--budget><4h><--out><{}>", out.display()));
        std::fs::create_dir(&out).unwrap();
        std::fs::write(out.join("session.toml"), "").unwrap();
        // printf takes its first word for the format.
        assert_eq!(run(), "--resume");
        assert!(text.contains("--resume \"$out\""));
    }
}
