"""What tables say below themselves about the measurements they show."""

from collections.abc import Mapping, Sequence

from hopscope.runtime.texts.counting import counted
from hopscope.store.experiments.appraisals import ExperimentAppraisal, select_appraisal
from hopscope.tracing import proxies


def appraisal_notes(
    appraised: Mapping[str, Sequence[ExperimentAppraisal]], appraisal: str
) -> tuple[str, ...]:
    """A note for each experiment: the appraisal shown, and the other appraisals.

    Args:
        appraised: the appraisals of each experiment, by its name.
        appraisal: which is shown, as `select_appraisal` chooses it.
    """
    notes = []
    for name, found in appraised.items():
        shown = select_appraisal(found, appraisal)
        if shown is None:
            continue
        provenance = shown.provenance
        settings = {**provenance.settings, "seed": provenance.seed}
        how = ", ".join(f"{key}={value}" for key, value in sorted(settings.items()))
        when = f", {shown.last:%Y-%m-%d %H:%M}" if shown.last else ""
        which = ", the original" if shown is found[0] else ""
        note = (
            f"SePer and GroGU{f' of {name}' if len(appraised) > 1 else ''}: appraisal "
            f"{provenance.settings_hash[:8]}{which}, by {provenance.reader} ({how}), "
            f"{counted(shown.runs, 'run')}{when}"
        )
        if others := [e.provenance.settings_hash[:8] for e in found if e is not shown]:
            note += f"; also measured: {', '.join(others)} (--appraisal)"
        notes.append(note)
        if remark := proxies.told_of_runs(shown.ran, provenance.reader):
            notes.append(f"{name}: {remark}")
    return tuple(notes)
