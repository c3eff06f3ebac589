"""A job as it runs in a container: what its image brings is that of the image."""

from joinlib.spec.model import StreamJoin


def of_image(document: StreamJoin) -> StreamJoin:
    """Return a job whose functions are those of the image: volumes, and the folder of its file, hold none."""
    functions = {
        name: function.model_copy(update={"path": None}) for name, function in document.spec.functions.items()
    }
    return document.model_copy(update={"spec": document.spec.model_copy(update={"functions": functions})})
