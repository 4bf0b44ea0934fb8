/** Something that is done, once at a time: the second of two quick clicks does nothing. */
import { useMutation, type UseMutationOptions, type UseMutationResult } from "@tanstack/react-query";
import { useRef } from "react";

/** `isPending` is drawn a moment after `mutate`, and a double click is faster: what is under way is known here at once. */
export function useDeed<T, V = void>(options: UseMutationOptions<T, Error, V>): UseMutationResult<T, Error, V> {
  const underWay = useRef(false);
  const deed = useMutation({
    ...options,
    onSettled: (...told) => {
      underWay.current = false;
      return options.onSettled?.(...told);
    },
  });
  const { mutate } = deed;
  const once: typeof mutate = (...given) => {
    if (underWay.current) return;
    underWay.current = true;
    mutate(...given);
  };
  return { ...deed, mutate: once };
}
