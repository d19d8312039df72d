package spt.oracle;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.util.SerializedThrowable;

/** The chain of causes of a failure, outermost first, as "class: message". */
final class Causes {
    static List<String> of(Throwable failure) {
        List<String> chain = new ArrayList<>();
        for (Throwable t = failure; t != null && chain.size() < 32; t = t.getCause()) {
            Throwable shown =
                    t instanceof SerializedThrowable
                            ? ((SerializedThrowable) t).deserializeError(Causes.class.getClassLoader())
                            : t;
            String text = shown instanceof SerializedThrowable
                    ? ((SerializedThrowable) shown).getOriginalErrorClassName() + ": " + shown.getMessage()
                    : shown.getClass().getName() + ": " + shown.getMessage();
            if (chain.isEmpty() || !chain.get(chain.size() - 1).equals(text)) {
                chain.add(text);
            }
            t = shown;
        }
        return chain;
    }

    private Causes() {}
}
